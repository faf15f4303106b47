/* bind.h - finds the session that a run joins: the session that the owner named, or one for each
 * session of a client, under the owner's session policy. */
#ifndef SERVE_BIND_H
#define SERVE_BIND_H

#include "serve/serve.h"
#include "session/types.h"

int bind_new(struct serve *s, struct binding **ret, struct ssb_error *err);
void bind_free(struct binding *b); /* accepts NULL */

struct bound {
	const struct binding *binding;
	bool own;            /* true: it is the client's own session, which its first call starts */
	char id[SESSION_ID]; /* "": the owner configured no session */
	char agent[SESSION_ID]; /* "": the agent that the policy names */
};

/* Finds the session that runs of this call join. If the client started this server, the session's
 * id comes from CLAUDE_CODE_SESSION_ID or from _meta of the call. All other clients share one
 * session: that of the token, or else that of this server. */
void bind_of(const struct binding *b, const struct mcp_call *c, struct bound *ret);
/* Starts the session if it does not exist yet. Opens the store and waits for its lock, so it must
 * run in a process of its own, never in the loop. `arg` is a struct bound. */
int bind_ensure(const void *arg, struct ssb_error *err);

#endif
