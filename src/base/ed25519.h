/* ed25519.h - signatures by RFC 8032 (pure Ed25519).
 *
 * Everything that touches a secret takes constant time. A public key is always
 * derived from its seed, never taken from elsewhere: to sign with a key that is
 * not one's own gives the secret away. */
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
	uint8_t scalar[32]; /* secret, as is the prefix */
	uint8_t prefix[32];
};

void ed25519_key_init(struct ed25519_key *key, const uint8_t seed[ED25519_SEED]);
void ed25519_key_done(struct ed25519_key *key); /* wipes it */

void ed25519_sign(const struct ed25519_key *key, const void *message, size_t len,
                  uint8_t ret[ED25519_SIGNATURE]);

/* Strict: one signature, one spelling. False for S not below L, for points in
 * any but their own encoding, and for public keys of small order, under which
 * one signature holds for many messages. */
bool ed25519_verify(const uint8_t public[ED25519_PUBLIC], const void *message, size_t len,
                    const uint8_t signature[ED25519_SIGNATURE]);

#endif
