/* key.h - the owner's Ed25519 key, with which records are signed.
 *
 * <state_dir>/trace.key holds the seed in hex and a newline, 0600; trace.pub
 * beside it the public key. Both are made on first use. The key is the truth:
 * a trace.pub that is absent or not of this key is written again.
 *
 * Runs that start at once agree on one key: each writes a file of its own, and
 * the first to get the name wins. What others could have read or replaced is
 * no key, and is refused: a signature must mean "the owner's supervisor". */
#ifndef TRACE_KEY_H
#define TRACE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ed25519.h"
#include "base/sha256.h"
#include "policy/owner.h"
#include "skillsandbox.h"

/* In the file: 32 bytes in hex, and a newline. */
#define TRACE_KEY_TEXT ((size_t)(2 * ED25519_SEED + 1))

struct trace_key {
	struct ed25519_key pair;
};

/* Loads the key, or makes it. `ret` is to be given to trace_key_done() as soon
 * as the signature is made, and not to exist across a fork. */
int trace_key_load(const struct owner *o, struct trace_key *ret, struct ssb_error *err);
/* The key is there as it should be, and trace_key_load() will find nothing to make or to
 * refuse: a look before every run. False: for trace_key_load() to judge. */
bool trace_key_ready(const struct owner *o);
void trace_key_done(struct trace_key *k); /* wipes it; accepts a zeroed one */

/* Of the chain's head. */
void trace_key_sign(const struct trace_key *k, const uint8_t hash[SHA256_BYTES],
                    uint8_t ret[ED25519_SIGNATURE]);

/* The owner's public key, to tell their records from others'. Makes nothing:
 * SSB_E_NOT_FOUND where there is none yet. */
int trace_key_public(const struct owner *o, uint8_t ret[ED25519_PUBLIC], struct ssb_error *err);

#endif
