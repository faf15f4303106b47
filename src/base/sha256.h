/* sha256.h - SHA-256 (FIPS 180-4), in pieces or at once.
 *
 * The processor's own instructions are used where it has them. What it has is
 * read from what the C library found out at its start; where the library does
 * not tell, asking means a CPUID, which traps in a virtual machine and costs
 * more than hashing the few KB of a plain run: then only after the first
 * 64 KiB, or when sha256_accelerate() is called. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t bytes; /* so far; modulo SHA256_BLOCK of them are in block */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
/* `s` is to be initialised again before further use. */
void sha256_final(struct sha256 *s, uint8_t ret[SHA256_BYTES]);
void sha256(const void *data, size_t len, uint8_t ret[SHA256_BYTES]);

/* Worth it before much data: finds the fastest way now. True if it is one of
 * the processor's own. */
bool sha256_accelerate(void);
/* Back to plain C: for tests, and to measure. */
void sha256_portable(void);

#endif
