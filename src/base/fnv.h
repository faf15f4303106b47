/* fnv.h - the 64-bit FNV-1a hash, for hash tables in memory. Its values are never written to a
 * file. */
#ifndef BASE_FNV_H
#define BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

/* Hashes `len` bytes. `seed` is one more value that belongs to the key. To hash a key in pieces,
 * give the hash of one piece as the seed of the next. An attacker who knows the seed can choose
 * keys that have the same hash. */
static inline uint64_t fnv_hash(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037ULL ^ seed;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ p[i]) * 1099511628211ULL;
	}
	return h ^ h >> 32; /* mixes the high bits into the low bits, which the tables use */
}

#endif
