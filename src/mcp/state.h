/* state.h - seals what a handler remembers across a question.
 *
 * The modern protocol keeps nothing between requests: the client receives `requestState` and
 * sends it back. The text is sealed with HMAC-SHA-256 and a key of this process, over the text
 * and everything that it is bound to. It is authentic, not secret.
 *
 *   hex( nonce 16 | valid until, ms, 8 | MAC 32 | text )
 *   MAC( "mcp requestState 1" | method | principal | digest of parameters | nonce |
 *        valid until | text ), each with its length before it
 *
 * Each state is valid once: the store remembers the nonces that are outstanding, and removes
 * one when it comes back. If there are too many, it forgets the oldest. A forgotten nonce is
 * refused, so that a flood can cost a client its question but can never permit a replay. */
#ifndef MCP_STATE_H
#define MCP_STATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

#define STATE_TTL_MS (10U * 60 * 1000)

struct state_store;

/* NULL: out of memory, or no random key. */
struct state_store *state_store_new(uint64_t ttl_ms);
void state_store_free(struct state_store *s); /* wipes the key; accepts NULL */

/* What a state is bound to: it is valid for nothing else. */
struct state_binding {
	const char *method;
	const char *principal;
	uint8_t params[SHA256_BYTES]; /* digest of the parameters that must not change */
};

/* Appends the sealed text. -1: too long (MAX_MCP_STATE), out of memory, or no random bytes. */
int state_seal(struct state_store *s, const struct state_binding *of, const char *text,
               struct buf *out);

enum state_verdict {
	STATE_GOOD,
	STATE_FORGED, /* not ours, changed, or for another method, client or request */
	STATE_OLD,    /* expired */
	STATE_USED,   /* used before, or forgotten */
	STATE_FAILED, /* out of memory */
};
/* Appends the text if the state is good, and removes its nonce. */
enum state_verdict state_open(struct state_store *s, const struct state_binding *of,
                              const char *sealed, struct buf *ret_text);
const char *state_verdict_text(enum state_verdict v); /* a clause for the client */

#endif
