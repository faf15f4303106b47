/* approve.h - may this skill run now for this client? The consent decision (consent/decision.h) of
 * one call, with the steps that the server does for it:
 *
 *   LOOK   reads the skill's files in an errand, unless nothing was approved and nothing is missing
 *   PLAN   makes the plan (plans.h)
 *   ASK    asks the owner through the client, who answers: deny (the default), once, this session,
 *          or always
 *   KEEP   stores the approval, in an errand
 *
 * The client is never asked for something that only the policy file can allow, or that nothing
 * can allow. The server writes the words of a question. Text of a manifest is quoted in it,
 * with hidden characters made visible. */
#ifndef SERVE_APPROVE_H
#define SERVE_APPROVE_H

#include "consent/decision.h"
#include "serve/plans.h"

struct approvals;

/* The items that one answer of the owner covers. If all members are zero, there are none. */
struct approve_items {
	bool as_it_is;   /* the permission to run with these files, approved or not */
	struct given *v; /* values owned */
	size_t n;
};

/* What an errand found out about the skill's files. If all members are zero, no errand has ended
 * yet. */
struct approve_files {
	bool known;    /* all files were read */
	char *why;     /* if not `known`: why the files cannot be pinned */
	bool large;    /* too large for a copy: snapshot_fits() */
	char *changes; /* changes since the approval, in lines for people; NULL: unknown */
};

/* The approval of one call. Its address must not change between approve_begin() and
 * approve_done(). */
struct approve_case {
	struct serve *serve;
	struct mcp_call *call;
	struct skill skill;        /* owned */
	char *const *args;         /* borrowed; may be NULL */
	struct string_list naming; /* those that name a file: approve_look_up() */
	struct narrow narrow;
	/* Called from the loop when a step has ended for which approve_decide() returned
	 * CONSENT_WAITS. The caller can then call approve_decide() again, unless *err says that the
	 * step failed. */
	void (*resume)(void *arg, const struct ssb_error *err);
	void *arg;

	struct consent_decision decision;
	struct approve_files files;
	unsigned rounds;           /* questions so far, including those of earlier rounds */
	bool heard;                /* the client's answer was used */
	bool asked;                /* the client was asked: the handler must give up the call */
	struct approve_items keep; /* items that the answer "always" approved */
	bool hopeless;             /* refused, and no command of the owner would help */
	char why[256];             /* why it was refused; "": it was not */
};

/* Finds the skill by `word`. After this call, the caller may set args, narrow, resume and arg. It
 * must call approve_done() in any case. */
int approve_begin(struct approve_case *k, struct serve *s, struct mcp_call *c, const char *word,
                  struct ssb_error *err);
void approve_done(struct approve_case *k);

/* Finds out in an errand which arguments name files: the server itself must not wait for a file
 * system that a client chose. Must be called before approve_decide(). Returns 0 if there is nothing
 * to find out; CONSENT_WAITS if k->resume will be called; or -1. */
int approve_look_up(struct approve_case *k, struct ssb_error *err);
/* Returns 0 if k->decision.plan may run. That plan is borrowed until the next plan is made. Returns
 * CONSENT_WAITS if the decision must wait: if k->asked is set, the client's answer calls the
 * handler again from the start, otherwise k->resume is called later. Returns -1 if the skill must
 * not run; then approve_refuse() or *err says why. */
int approve_decide(struct approve_case *k, struct ssb_error *err);
/* Returns the plan with everything that was granted before. It is only shown: the client is not
 * asked, and nothing is run. Reads all files of the skill, so it must be called in an errand. */
int approve_preview(struct approve_case *k, const struct ssb_plan **ret, struct ssb_error *err);
/* Must be called only after approve_decide() failed. If the owner's approval is what is missing,
 * answers the call with `approval_required` and with the command that approves, and returns true.
 * Otherwise returns false, and the call has no answer yet. */
bool approve_refuse(struct approve_case *k, const struct ssb_error *err);

int approvals_new(struct approvals **ret, struct ssb_error *err);
void approvals_free(struct approvals *a); /* accepts NULL */
/* Must be called when the client is gone: forgets the approvals for its session. */
void approvals_forget(struct approvals *a, const char *principal);

#endif
