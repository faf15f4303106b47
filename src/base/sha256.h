/* sha256.h - SHA-256 (FIPS 180-4) of data in pieces or as a whole.
 *
 * The SHA instructions of the processor are used if it has them. The C library usually knows this
 * from its start. Otherwise the instruction CPUID must be used, which traps in a virtual machine
 * and costs more than hashing the few KB of a plain run. So CPUID is used only after the first 64
 * KiB, or in sha256_accelerate(). */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t bytes; /* bytes so far; the last (bytes % SHA256_BLOCK) of them are in `block` */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
/* `s` must be initialised again before further use. */
void sha256_final(struct sha256 *s, uint8_t ret[SHA256_BYTES]);
void sha256(const void *data, size_t len, uint8_t ret[SHA256_BYTES]);

/* Chooses the fastest implementation now; call it before hashing much data. Returns true if the
 * chosen implementation uses SHA instructions. */
bool sha256_accelerate(void);
/* Chooses plain C, for tests and measurements. */
void sha256_portable(void);

#endif
