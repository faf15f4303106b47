/* ed25519.c - signs and verifies with libsodium. */
#include "base/ed25519.h"

#include <assert.h>
#include <string.h>

#include <sodium/crypto_sign_ed25519.h>

static_assert(ED25519_SEED == crypto_sign_ed25519_SEEDBYTES &&
                      ED25519_PUBLIC == crypto_sign_ed25519_PUBLICKEYBYTES &&
                      ED25519_SIGNATURE == crypto_sign_ed25519_BYTES &&
                      ED25519_SEED + ED25519_PUBLIC == crypto_sign_ed25519_SECRETKEYBYTES,
              "libsodium's sizes are those of RFC 8032");

/* sodium_init() is not called. It selects faster code for other algorithms and
 * seeds the random generator; Ed25519 needs neither, and every run signs once. */

void ed25519_key_init(struct ed25519_key *key, const uint8_t seed[ED25519_SEED])
{
	crypto_sign_ed25519_seed_keypair(key->public, key->secret, seed);
}

void ed25519_key_done(struct ed25519_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

void ed25519_sign(const struct ed25519_key *key, const void *message, size_t len,
                  uint8_t ret[ED25519_SIGNATURE])
{
	/* `ret` may overlap the message, and libsodium writes a part of the signature before it has
	 * read the whole message. */
	uint8_t signature[ED25519_SIGNATURE];

	crypto_sign_ed25519_detached(signature, NULL, message, len, key->secret);
	memcpy(ret, signature, sizeof(signature));
}

bool ed25519_verify(const uint8_t public[ED25519_PUBLIC], const void *message, size_t len,
                    const uint8_t signature[ED25519_SIGNATURE])
{
	return crypto_sign_ed25519_verify_detached(signature, message, len, public) == 0;
}
