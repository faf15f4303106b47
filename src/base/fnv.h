/* fnv.h - the hash of tables in memory: FNV-1a with 64 bits. Its values are never stored. */
#ifndef BASE_FNV_H
#define BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

/* Hashes `len` bytes. `seed` is one more value that belongs to the key, or the hash of the bytes
 * before these. An attacker who knows the seed can choose keys that have the same hash. */
static inline uint64_t fnv_hash(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037ULL ^ seed;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ p[i]) * 1099511628211ULL;
	}
	return h ^ h >> 32; /* tables use the low bits */
}

#endif
