/* key.h - loads the owner's Ed25519 key, which signs records.
 *
 * <state_dir>/trace.key contains the seed in hexadecimal and a newline, mode 0600; trace.pub beside
 * it contains the public key. Both are made on first use. trace.key is authoritative: if trace.pub
 * is missing or does not match it, trace.pub is written again.
 *
 * Runs that start at the same time agree on one key: each run writes its own file, and the file
 * that is first renamed to trace.key is the key of all. A key that other users could have read or
 * replaced is refused, because a signature must mean "written by the owner's supervisor". */
#ifndef TRACE_KEY_H
#define TRACE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ed25519.h"
#include "base/sha256.h"
#include "policy/owner.h"
#include "skillsandbox.h"

/* The size of the file: 32 bytes in hexadecimal, and a newline. */
#define TRACE_KEY_TEXT ((size_t)(2 * ED25519_SEED + 1))

struct trace_key {
	struct ed25519_key pair;
};

/* Loads the key, or makes it on first use. Returns 0, or -1 with `err`. The caller must call
 * trace_key_done() as soon as the signature is made, and must not fork while it has the key. */
int trace_key_load(const struct owner *o, struct trace_key *ret, struct ssb_error *err);
/* Returns true if the key exists and is valid, so that trace_key_load() will neither make nor
 * refuse it. This check is cheap and runs before every run. If it returns false, call
 * trace_key_load() for the final answer. */
bool trace_key_ready(const struct owner *o);
void trace_key_done(struct trace_key *k); /* wipes it; accepts a zeroed one */

/* Signs `hash`, the hash of the last line of the record. */
void trace_key_sign(const struct trace_key *k, const uint8_t hash[SHA256_BYTES],
                    uint8_t ret[ED25519_SIGNATURE]);

/* Reads the owner's public key, which is needed to recognise the owner's records. Never makes a
 * key; fails with SSB_E_NOT_FOUND if there is none yet. */
int trace_key_public(const struct owner *o, uint8_t ret[ED25519_PUBLIC], struct ssb_error *err);

#endif
