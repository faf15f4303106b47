/* approve.h - a plan needs a grant that the owner has not given: the owner is asked
 * through the client, once / this session / always / deny, and denies by default. */
#ifndef SERVE_APPROVE_H
#define SERVE_APPROVE_H

#include "serve/plans.h"

/* What was approved for this skill as it is now (its manifest's digest), by "always"
 * (kept in the owner's state directory, where no skill can reach) and by "this
 * session" (for one principal, while the server lives). *ret is new (free()), its
 * values are borrowed until the next call. */
int approvals_for(struct approvals *a, const char *principal, const struct skill *skill,
                  struct extra_grant **ret, size_t *ret_n, struct ssb_error *err);

enum approval {
	APPROVAL_NONE,   /* the plan needs nothing more */
	APPROVAL_WAIT,   /* the client was asked: mcp_wait() was called, the handler leaves */
	APPROVAL_GIVEN,  /* make the plan anew, with what is in *ret */
	APPROVAL_DENIED, /* it was answered, with mcp_tool_done(): the handler leaves */
};

/* Looks at the refusals of `plan`. Where the client cannot be asked, or the owner
 * said no, the call is answered with `approval_required` and the command that would
 * approve. *ret is as that of approvals_for(), for this one run. */
enum approval approval_ask(struct approvals *a, struct mcp_call *c, const struct skill *skill,
                           const struct ssb_plan *plan, struct extra_grant **ret, size_t *ret_n);

int approvals_new(struct serve *s, struct approvals **ret, struct ssb_error *err);
void approvals_free(struct approvals *a); /* accepts NULL */

#endif
