/* keep.h - "always": every file of the skill is read and copied, which takes as long as
 * they are large. Done in an errand; then the call goes on. */
#ifndef SERVE_KEEP_H
#define SERVE_KEEP_H

#include "serve/approve.h"

/* `then` comes in any case unless -1 is returned, never from inside of this; `why` is
 * NULL, or why it could not be kept: also where the files are others than in `looked`.
 * Copies what it needs. */
typedef void keep_then(struct serve *s, struct mcp_call *c, const char *why);
int keep_start(struct serve *s, struct mcp_call *c, const struct skill *skill,
               const struct ssb_plan *plan, const struct approved_for *given,
               const struct looked *looked, keep_then *then, struct ssb_error *err);

#endif
