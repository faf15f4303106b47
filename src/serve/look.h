/* look.h - what a skill is now: every file of it is read, and copied where the copy that was
 * approved is gone, which takes as long as they are large. Done in an errand; then the call
 * goes on. */
#ifndef SERVE_LOOK_H
#define SERVE_LOOK_H

#include "serve/plans.h"

/* Zero is empty. */
struct looked {
	struct consent_found found; /* of an errand found.now is the digest alone */
	bool known;                 /* found.now is of all its files; else: */
	char *why;                  /* they cannot be pinned */
	bool large;                 /* too large for a copy: snapshot_fits() */
	bool copied;                /* the copy that it runs from is there */
	char tree[DIGEST_TEXT];     /* of found.now; "" where it is not known */
	char *changes; /* since it was approved, in lines for people; NULL: none are known */
};
void looked_done(struct looked *l);

/* Here and now: for errands. */
int look_here(const struct serve *s, const struct skill *skill, struct looked *ret,
              struct ssb_error *err);

/* What was tried before for the call goes on with it. */
struct look_call {
	bool kept;            /* keep.h */
	const char *kept_why; /* copied */
};
/* `then` comes in any case unless -1 is returned, never from inside of this; NULL `looked`:
 * *err says why. */
typedef void look_then(struct serve *s, struct mcp_call *c, const struct look_call *before,
                       struct looked *looked, const struct ssb_error *err);
int look_start(struct serve *s, struct mcp_call *c, const struct skill *skill,
               const struct look_call *before, look_then *then, struct ssb_error *err);

#endif
