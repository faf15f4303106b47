/* key.h - the owner's Ed25519 key, with which records are signed.
 *
 * <state_dir>/trace.key holds the seed in hex and a newline, mode 0600; trace.pub beside it holds
 * the public key. Both are made on first use. trace.key decides: a trace.pub that is missing or
 * does not match it is written again.
 *
 * Runs that start at the same time agree on one key: each writes a file of its own, and the first
 * to get the name wins. A key that other users could have read or replaced is refused: a
 * signature must mean "the owner's supervisor". */
#ifndef TRACE_KEY_H
#define TRACE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ed25519.h"
#include "base/sha256.h"
#include "policy/owner.h"
#include "skillsandbox.h"

/* Bytes of the file: 32 bytes in hex, and a newline. */
#define TRACE_KEY_TEXT ((size_t)(2 * ED25519_SEED + 1))

struct trace_key {
	struct ed25519_key pair;
};

/* Loads the key, or makes it. The caller must call trace_key_done() as soon as the signature is
 * made, and must not hold the key across a fork. */
int trace_key_load(const struct owner *o, struct trace_key *ret, struct ssb_error *err);
/* Returns true if the key is in order, so that trace_key_load() will have nothing to make or to
 * refuse. Called before every run because it is cheap. On false, trace_key_load() decides. */
bool trace_key_ready(const struct owner *o);
void trace_key_done(struct trace_key *k); /* wipes it; accepts a zeroed one */

/* Signs the chain's head. */
void trace_key_sign(const struct trace_key *k, const uint8_t hash[SHA256_BYTES],
                    uint8_t ret[ED25519_SIGNATURE]);

/* Reads the owner's public key, which tells the owner's records from others. Makes nothing; fails
 * with SSB_E_NOT_FOUND if there is none yet. */
int trace_key_public(const struct owner *o, uint8_t ret[ED25519_PUBLIC], struct ssb_error *err);

#endif
