/* subs.h - subscriptions.
 *
 * Legacy: resources/subscribe and unsubscribe keep a list for each peer. Updates are sent to the
 * peer's `news`. Every initialized peer is told when a list has changed.
 *
 * Modern: subscriptions/listen is a call that is answered only when the server ends. Until then
 * updates are sent to the call's `out`, with the call's id in _meta.
 *
 * Both are limited for each peer (limits.h). Updates for a client that does not read are not stored
 * here, only in the queue of its transport. */
#ifndef MCP_SUBS_H
#define MCP_SUBS_H

#include "mcp/mcp.h"

struct mcp_peer;
struct subs;

struct subs *subs_new(void);    /* NULL: out of memory */
void subs_free(struct subs *s); /* must be called after all calls have ended; accepts NULL */

/* Handlers of the protocol's methods: the first two are MCP_LEGACY, the third is MCP_MODERN. */
mcp_handler subs_subscribe, subs_unsubscribe, subs_listen;

/* Removes the subscriptions of a peer that is being freed. The caller must cancel the peer's calls.
 */
void subs_forget(struct subs *s, const struct mcp_peer *p);
/* Answers every subscriptions/listen with a normal result. */
void subs_end(struct subs *s);

/* Sends news to the subscribers of the task. `object` is a finished JSON object with at least one
 * member. */
void subs_task(struct subs *s, const char *task_id, const char *object);

#endif
