/* state.h - what a handler remembers across a question, carried by the client.
 *
 * The modern protocol keeps nothing between requests: the client gets `requestState`
 * and brings it back. So it is sealed: HMAC-SHA-256 with a key of this process over
 * the text and everything that it belongs to. It is not secret, only authentic.
 *
 *   hex( nonce 16 | good until, ms, 8 | MAC 32 | text )
 *   MAC( "mcp requestState 1" | method | principal | digest of parameters | nonce |
 *        good until | text ), each with its length before it
 *
 * Good once: the nonces that are outstanding are remembered, and one that comes back
 * is forgotten. Where there are too many of them the oldest is: what is forgotten is
 * refused, so a flood can cost somebody a question, never permit a replay. */
#ifndef MCP_STATE_H
#define MCP_STATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

#define STATE_TTL_MS (10U * 60 * 1000)

struct state_store;

/* NULL: no memory, or no random key. */
struct state_store *state_store_new(uint64_t ttl_ms);
void state_store_free(struct state_store *s); /* wipes the key; accepts NULL */

/* What a state belongs to: it is good for nothing else. */
struct state_binding {
	const char *method;
	const char *principal;
	uint8_t params[SHA256_BYTES]; /* digest of the parameters that must not change */
};

/* Appends the sealed text. -1: too long (MAX_MCP_STATE), or no memory or randomness. */
int state_seal(struct state_store *s, const struct state_binding *of, const char *text,
               struct buf *out);

enum state_verdict {
	STATE_GOOD,
	STATE_FORGED, /* not ours, changed, or made for another method, client or request */
	STATE_OLD,    /* past its time */
	STATE_USED,   /* has been here before, or is forgotten */
	STATE_FAILED, /* no memory */
};
/* Appends the text where it is good; then it never is again. */
enum state_verdict state_open(struct state_store *s, const struct state_binding *of,
                              const char *sealed, struct buf *ret_text);
const char *state_verdict_text(enum state_verdict v); /* for the client, a clause */

#endif
