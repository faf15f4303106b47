#include "base/ed25519.h"

#include <string.h>

#include "base/ge25519.h"
#include "base/sc25519.h"
#include "base/sha512.h"

void ed25519_key_init(struct ed25519_key *key, const uint8_t seed[ED25519_SEED])
{
	uint8_t h[SHA512_BYTES];
	struct ge a;

	sha512(seed, ED25519_SEED, h);
	h[0] &= 0xf8; /* RFC 8032, 5.1.5 */
	h[31] = (uint8_t)((h[31] & 0x7f) | 0x40);
	memcpy(key->scalar, h, 32);
	memcpy(key->prefix, h + 32, 32);
	ge_mul_base(key->scalar, &a);
	ge_encode(&a, key->public);
	explicit_bzero(h, sizeof(h));
}

void ed25519_key_done(struct ed25519_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

/* SHA-512(R || A || message) modulo L */
static void challenge(const uint8_t r[32], const uint8_t public[ED25519_PUBLIC],
                      const void *message, size_t len, uint8_t ret[32])
{
	struct sha512 s;
	uint8_t h[SHA512_BYTES];

	sha512_init(&s);
	sha512_update(&s, r, 32);
	sha512_update(&s, public, ED25519_PUBLIC);
	sha512_update(&s, message, len);
	sha512_final(&s, h);
	sc_reduce(h, ret);
}

void ed25519_sign(const struct ed25519_key *key, const void *message, size_t len,
                  uint8_t ret[ED25519_SIGNATURE])
{
	uint8_t h[SHA512_BYTES], nonce[32], k[32], signature[ED25519_SIGNATURE];
	struct sha512 s;
	struct ge r;

	sha512_init(&s);
	sha512_update(&s, key->prefix, sizeof(key->prefix));
	sha512_update(&s, message, len);
	sha512_final(&s, h);
	sc_reduce(h, nonce);
	ge_mul_base(nonce, &r);
	ge_encode(&r, signature);
	challenge(signature, key->public, message, len, k);
	sc_mul_add(key->scalar, k, nonce, signature + 32);
	memcpy(ret, signature, sizeof(signature)); /* at the end: it may be the message */
	explicit_bzero(h, sizeof(h));
	explicit_bzero(nonce, sizeof(nonce));
}

bool ed25519_verify(const uint8_t public[ED25519_PUBLIC], const void *message, size_t len,
                    const uint8_t signature[ED25519_SIGNATURE])
{
	const uint8_t *s = signature + 32;
	uint8_t k[32], expected[32];
	struct ge a, sb, ka;

	if (!sc_is_canonical(s) || ge_decode(public, &a) != 0 || ge_is_small(&a)) {
		return false;
	}
	/* R = sB - kA, compared as bytes: so R too has one spelling only. */
	challenge(signature, public, message, len, k);
	ge_negate(&a);
	ge_mul_vartime(k, &a, &ka);
	ge_mul_base(s, &sb);
	ge_add(&sb, &sb, &ka);
	ge_encode(&sb, expected);
	return memcmp(expected, signature, sizeof(expected)) == 0;
}
