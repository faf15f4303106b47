/* approve.h - may this skill run now for this client? The consent decision (consent/decision.h) of
 * one call, with the steps that the server does for it:
 *
 *   LOOK   reads the skill's files in an errand, unless nothing was approved and nothing is missing
 *   PLAN   plans.h
 *   ASK    asks the owner through the client: deny (the default), once, this session, always
 *   KEEP   stores the approval, in an errand
 *
 * The client is never asked for what only the policy file could allow, or nothing. The words of a
 * question are ours; text of a manifest is quoted in it, with its characters made visible. */
#ifndef SERVE_APPROVE_H
#define SERVE_APPROVE_H

#include "consent/decision.h"
#include "serve/plans.h"

struct approvals;

/* What one answer of the owner is about. Zero is empty. */
struct approve_items {
	bool as_it_is;   /* that the skill runs with these files, approved or not */
	struct given *v; /* values owned */
	size_t n;
};

/* What an errand found out about the skill's files. Zero is nothing. */
struct approve_files {
	bool known;    /* all of them were read; if not: */
	char *why;     /* they cannot be pinned */
	bool large;    /* too large for a copy: snapshot_fits() */
	char *changes; /* since the approval, as lines for people; NULL: not known */
};

/* One call. Between approve_begin() and approve_done() its address must not change. */
struct approve_case {
	struct serve *serve;
	struct mcp_call *call;
	struct skill skill; /* owned */
	char *const *args;  /* borrowed; may be NULL */
	struct narrow narrow;
	/* Called from the loop when a step has ended for which approve_decide() returned
	 * CONSENT_WAITS: it can be called again, unless *err says that the step failed. */
	void (*resume)(void *arg, const struct ssb_error *err);
	void *arg;

	struct consent_decision decision;
	struct approve_files files;
	unsigned rounds;           /* questions so far, with those before the client's answer */
	bool heard;                /* the client's answer was used */
	bool asked;                /* the client was asked: the handler must leave the call */
	struct approve_items keep; /* what the answer "always" was about */
	bool hopeless;             /* refused, and no command of the owner would help */
	char why[256];             /* why it was refused; "": it was not */
};

/* Finds the skill by `word`. The caller may set args, narrow, resume and arg after that, and calls
 * approve_done() in any case. */
int approve_begin(struct approve_case *k, struct serve *s, struct mcp_call *c, const char *word,
                  struct ssb_error *err);
void approve_done(struct approve_case *k);

/* 0: k->decision.plan may run; it is borrowed until the next plan is made. CONSENT_WAITS: either
 * k->asked, and the client's answer calls the handler again from the start, or k->resume comes.
 * -1: the skill does not run; approve_refuse() or *err says why. */
int approve_decide(struct approve_case *k, struct ssb_error *err);
/* The plan with everything that was granted before, to be looked at; nobody is asked. Reads all
 * files of the skill: only for errands. */
int approve_preview(struct approve_case *k, const struct ssb_plan **ret, struct ssb_error *err);
/* After approve_decide() failed: answers the call with `approval_required` and with the command
 * that approves, if the owner's approval is what is missing. False: it is not, and the call has no
 * answer yet. */
bool approve_refuse(struct approve_case *k, const struct ssb_error *err);

int approvals_new(struct approvals **ret, struct ssb_error *err);
void approvals_free(struct approvals *a); /* accepts NULL */
/* The client is gone: forgets what was approved for its session. */
void approvals_forget(struct approvals *a, const char *principal);

#endif
