/* bind.h - which session a run is part of: the one that the owner named, or one of
 * its own for each client session, by the owner's session policy. */
#ifndef SERVE_BIND_H
#define SERVE_BIND_H

#include "serve/serve.h"

int binding_new(struct serve *s, struct binding **ret, struct ssb_error *err);
void binding_free(struct binding *b); /* accepts NULL */

/* The id of the session that this call's runs belong to, started where it is new; ""
 * where the owner configured none. *ret is borrowed until the next call. The client's
 * own id comes from CLAUDE_CODE_SESSION_ID, from _meta of the call, or else is the
 * principal. */
int binding_of(struct binding *b, const struct mcp_call *c, const char **ret,
               struct ssb_error *err);

#endif
