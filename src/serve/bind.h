/* bind.h - which session a run is part of: the one that the owner named, or one of
 * its own for each client session, by the owner's session policy. */
#ifndef SERVE_BIND_H
#define SERVE_BIND_H

#include "serve/serve.h"
#include "session/types.h"

int bind_new(struct serve *s, struct binding **ret, struct ssb_error *err);
void bind_free(struct binding *b); /* accepts NULL */

struct bound {
	const struct binding *binding;
	bool own;               /* of the client: it begins with its first call */
	char id[SESSION_ID];    /* "": the owner configured none */
	char agent[SESSION_ID]; /* "": as the policy says */
};

/* The session that this call's runs belong to. The client's own id comes from
 * CLAUDE_CODE_SESSION_ID, or from _meta of the call where the client started us; all
 * others share one, that of the token, or else of this server. */
void bind_of(const struct binding *b, const struct mcp_call *c, struct bound *ret);
/* It is there after it, started where it is new. Opens the store and waits for its lock:
 * for a process of its own, never for the loop. `arg` is a struct bound. */
int bind_ensure(const void *arg, struct ssb_error *err);

#endif
