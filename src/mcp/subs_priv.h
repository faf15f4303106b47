/* subs_priv.h - what subs.c (who wants to hear) and news.c (what they hear) share. */
#ifndef MCP_SUBS_PRIV_H
#define MCP_SUBS_PRIV_H

#include "mcp/priv.h"
#include "mcp/words.h"

/* One subscriptions/listen, open. */
struct listen {
	struct listen *prev;
	struct listen *next;
	struct mcp_call *call; /* nobody has answered it */
	unsigned lists;        /* MCP_TOOLS, ...: told of changes */
	struct words uris;
	struct words tasks;
	uint64_t told; /* the last piece of news that it was told */
};

/* What one legacy peer has subscribed to. */
struct legacy {
	struct legacy *next;
	struct mcp_peer *peer;
	struct words uris;
	uint64_t told;
};

struct subs {
	struct listen *listens;
	struct legacy *legacies;
	uint64_t news; /* counted: whoever is told may change the lists meanwhile */
};

/* What a list is called, in all the places that speak of it. */
struct sub_list {
	enum mcp_feature what;
	enum mcp_feature change;
	const char *key;
	const char *method;
};
#define N_SUB_LISTS 3
extern const struct sub_list SUB_LISTS[N_SUB_LISTS];

/* {"_meta":{"...subscriptionId":ID},MEMBERS} to whoever listens. `object` is finished
 * JSON with at least one member, or NULL. The subscription may be gone after it. */
void listen_tell(const struct listen *l, const char *method, const char *object);

#endif
