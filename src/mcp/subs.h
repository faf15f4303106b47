/* subs.h - who wants to hear of what.
 *
 * Legacy: resources/subscribe and unsubscribe keep a list for each peer, and its news
 * carry what happens; that a list has changed goes to everybody who has initialized.
 * Modern: subscriptions/listen is a call that is answered when the server ends. Until
 * then what it asked for goes where its answer will go, with its id in _meta.
 *
 * The numbers of both are bounded for each peer (limits.h). A client that does not read
 * costs what its transport's queue holds, for nothing is kept here. */
#ifndef MCP_SUBS_H
#define MCP_SUBS_H

#include "mcp/mcp.h"

struct mcp_peer;
struct subs;

struct subs *subs_new(void);    /* NULL: no memory */
void subs_free(struct subs *s); /* after all calls; accepts NULL */

/* Rows of the protocol's methods: MCP_LEGACY, both, and MCP_MODERN. */
mcp_handler subs_subscribe, subs_unsubscribe, subs_listen;

/* The peer is about to be no more; its calls are canceled by whoever says so. */
void subs_forget(struct subs *s, const struct mcp_peer *p);
/* Answers every subscriptions/listen, gracefully. */
void subs_end(struct subs *s);

/* To those who listen to the task; `object` is finished JSON with at least one member. */
void subs_task(struct subs *s, const char *task_id, const char *object);

#endif
