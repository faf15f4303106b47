/* sha256_blocks.h - the implementations of hashing whole blocks; only for sha256.c. */
#ifndef BASE_SHA256_BLOCKS_H
#define BASE_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_k[64];

void sha256_blocks_portable(uint32_t state[8], const uint8_t *p, size_t n);
#if defined(__x86_64__)
void sha256_blocks_x86(uint32_t state[8], const uint8_t *p, size_t n);
#endif

#endif
