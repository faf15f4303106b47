/* ed25519.h - Ed25519 signatures (RFC 8032, pure Ed25519), computed by libsodium.
 *
 * Signing takes constant time. The public key is always derived from the seed:
 * signing with a mismatched public key would reveal the secret. */
#ifndef BASE_ED25519_H
#define BASE_ED25519_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ED25519_SEED      32
#define ED25519_PUBLIC    32
#define ED25519_SIGNATURE 64

struct ed25519_key {
	uint8_t public[ED25519_PUBLIC];
	uint8_t secret[ED25519_SEED + ED25519_PUBLIC]; /* the seed, then the public key */
};

void ed25519_key_init(struct ed25519_key *key, const uint8_t seed[ED25519_SEED]);
void ed25519_key_done(struct ed25519_key *key); /* wipes the key */

/* `ret` may overlap the message. */
void ed25519_sign(const struct ed25519_key *key, const void *message, size_t len,
                  uint8_t ret[ED25519_SIGNATURE]);

/* Accepts exactly one encoding of each signature. Returns false if S is not below
 * the group order L, if a point is not in its canonical encoding, or if the public
 * key has small order: under such a key one signature is valid for many messages. */
bool ed25519_verify(const uint8_t public[ED25519_PUBLIC], const void *message, size_t len,
                    const uint8_t signature[ED25519_SIGNATURE]);

#endif
