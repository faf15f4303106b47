/* state.h - seals the data that a handler keeps while the client is asked.
 *
 * In the modern era the server keeps nothing between requests: the client receives `requestState`
 * and sends it back. The text is sealed with HMAC-SHA-256 and a key of this process, over the text
 * and everything that the text is bound to. The text is authentic, but not secret.
 *
 *   hex( nonce 16 | valid until, ms, 8 | MAC 32 | text )
 *   MAC( "mcp requestState 1" | method | principal | digest of parameters | nonce |
 *        valid until | text ), each with its length before it
 *
 * Each state is valid once: the store remembers the nonces of all states that were sent, and
 * removes a nonce when its state comes back. If there are too many nonces, the store removes an old
 * one. A state whose nonce is not stored is refused. So a flood of requests can make a client's
 * answer invalid, but can never make a replay valid. */
#ifndef MCP_STATE_H
#define MCP_STATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

#define STATE_TTL_MS (10U * 60 * 1000)

struct state_store;

/* Returns NULL if there is no memory, or no random key is available. */
struct state_store *state_store_new(uint64_t ttl_ms);
void state_store_free(struct state_store *s); /* wipes the key; accepts NULL */

/* The values that a state is bound to. It is not valid for any other values. */
struct state_binding {
	const char *method;
	const char *principal;
	uint8_t params[SHA256_BYTES]; /* digest of the parameters, which must not change */
};

/* Seals the text, and appends the result to `out`. Returns -1 if the text is too long
 * (MAX_MCP_STATE), there is no memory, or no random bytes are available. */
int state_seal(struct state_store *s, const struct state_binding *of, const char *text,
               struct buf *out);

enum state_verdict {
	STATE_GOOD,
	STATE_FORGED, /* was changed, is from another server, or is bound to other values */
	STATE_OLD,    /* expired */
	STATE_USED,   /* used before, or its nonce was removed */
	STATE_FAILED, /* out of memory */
};
/* Appends the text of a valid state, and removes the state's nonce. */
enum state_verdict state_open(struct state_store *s, const struct state_binding *of,
                              const char *sealed, struct buf *ret_text);
const char *state_verdict_text(enum state_verdict v); /* a clause for the error message */

#endif
