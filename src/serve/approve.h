/* approve.h - a plan needs a grant that the owner has not given: the owner is asked
 * through the client, once / this session / always / deny, and denies by default.
 *
 * What only the policy file could allow, or nothing, is never asked for. The words of
 * the question are ours; what a manifest says in it is quoted and made visible. */
#ifndef SERVE_APPROVE_H
#define SERVE_APPROVE_H

#include "serve/look.h"

/* What was granted to one call so far. Zero is empty. */
struct approved_for {
	struct given *v; /* values owned */
	size_t n;
	unsigned rounds;
	bool heard; /* the client's last answer was taken */
	/* What is to be approved always; it is tried once for a call (keep.h). */
	struct given *keep; /* values owned */
	size_t n_keep;
	bool kept;            /* it was tried; */
	const char *kept_why; /* and could not be done: borrowed */
};
void approved_for_done(struct approved_for *f);

enum approval {
	APPROVAL_NONE,   /* the plan needs nothing more */
	APPROVAL_GIVEN,  /* make the plan anew, with what is in *given, and ask again */
	APPROVAL_KEEP,   /* what is in given->keep is to be kept first */
	APPROVAL_WAIT,   /* the client was asked, mcp_wait() was called: the handler leaves */
	APPROVAL_DENIED, /* the call was answered: the handler leaves */
};

/* What the call has so far, for a plan; borrows *looked and *given. */
void approval_wish(const struct looked *looked, const struct approved_for *given,
                   struct plan_wish *w);

/* Looks at the refusals of `plan`, which was made with *given and *looked. Where the client cannot
 * be asked, or the owner said no, the call is answered with `approval_required` and
 * the command that would approve. What is granted holds for the manifest as it is in
 * `plan` and for the skill's files as they were shown. A skill that is not
 * what was approved needs the owner's word even if it asks for nothing. */
enum approval approval_ask(struct approvals *a, struct mcp_call *c, const struct skill *skill,
                           const struct ssb_plan *plan, const struct looked *looked,
                           struct approved_for *given);

/* The plan with all that was granted before, to be looked at: nobody is asked. Reads all
 * of the skill: for errands. */
int approval_recall(const struct approvals *a, struct mcp_call *c, struct plan_wish *w,
                    struct approved_for *given, const struct ssb_plan **ret, struct ssb_error *err);

int approvals_new(struct serve *s, struct approvals **ret, struct ssb_error *err);
void approvals_free(struct approvals *a); /* accepts NULL */
/* It is gone: what was approved for it as long as it is there. */
void approvals_forget(struct approvals *a, const char *principal);

#endif
