/* sha512.h - SHA-512 (FIPS 180-4), for Ed25519: short messages, small code. */
#ifndef BASE_SHA512_H
#define BASE_SHA512_H

#include <stddef.h>
#include <stdint.h>

#define SHA512_BYTES 64
#define SHA512_BLOCK 128

struct sha512 {
	uint64_t state[8];
	uint64_t bytes; /* so far: 2^61 are out of reach */
	uint8_t block[SHA512_BLOCK];
};

void sha512_init(struct sha512 *s);
void sha512_update(struct sha512 *s, const void *data, size_t len);
/* Wipes `s`: there may have been a key in it. */
void sha512_final(struct sha512 *s, uint8_t ret[SHA512_BYTES]);
void sha512(const void *data, size_t len, uint8_t ret[SHA512_BYTES]);

#endif
