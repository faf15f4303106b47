/* subs.h - subscriptions.
 *
 * Legacy: resources/subscribe and unsubscribe keep a list for each peer, whose `news`
 * receives the updates. Every initialized peer hears of a changed list.
 *
 * Modern: subscriptions/listen is a call that is answered when the server ends. Until then
 * its updates go to the call's `out`, with the call's id in _meta.
 *
 * Both are limited for each peer (limits.h). Nothing is stored here for a client that does
 * not read: it costs no more than the queue of its transport. */
#ifndef MCP_SUBS_H
#define MCP_SUBS_H

#include "mcp/mcp.h"

struct mcp_peer;
struct subs;

struct subs *subs_new(void);    /* NULL: out of memory */
void subs_free(struct subs *s); /* after all calls; accepts NULL */

/* Rows of the protocol's methods: the first two are MCP_LEGACY, the third MCP_MODERN. */
mcp_handler subs_subscribe, subs_unsubscribe, subs_listen;

/* Removes the subscriptions of a peer that is about to be freed. The caller cancels its
 * calls. */
void subs_forget(struct subs *s, const struct mcp_peer *p);
/* Answers every subscriptions/listen with a normal result. */
void subs_end(struct subs *s);

/* Sends news to the subscribers of the task; `object` is finished JSON with at least one
 * member. */
void subs_task(struct subs *s, const char *task_id, const char *object);

#endif
