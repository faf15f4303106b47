/* hmac.c - computes HMAC-SHA-256 with sha256.h. */
#include "base/hmac.h"

#include <string.h>

void hmac_init(struct hmac *h, const void *key, size_t len)
{
	uint8_t pad[SHA256_BLOCK] = { 0 };

	if (len > sizeof(pad)) {
		sha256(key, len, pad);
	} else if (len > 0) {
		memcpy(pad, key, len);
	}
	for (size_t i = 0; i < sizeof(pad); i++) {
		pad[i] ^= 0x36;
	}
	sha256_init(&h->inner);
	sha256_update(&h->inner, pad, sizeof(pad));
	for (size_t i = 0; i < sizeof(pad); i++) {
		pad[i] ^= 0x36 ^ 0x5c;
	}
	sha256_init(&h->outer);
	sha256_update(&h->outer, pad, sizeof(pad));
	explicit_bzero(pad, sizeof(pad));
}

void hmac_update(struct hmac *h, const void *data, size_t len)
{
	sha256_update(&h->inner, data, len);
}

void hmac_final(struct hmac *h, uint8_t ret[SHA256_BYTES])
{
	uint8_t digest[SHA256_BYTES];

	sha256_final(&h->inner, digest);
	sha256_update(&h->outer, digest, sizeof(digest));
	sha256_final(&h->outer, ret);
	explicit_bzero(h, sizeof(*h));
}
