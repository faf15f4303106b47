/* sha256.c - computes SHA-256, and chooses the implementation that the processor has. */
#include "base/sha256.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "base/sha256_blocks.h"

#if defined(__x86_64__)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define PROCESSOR_IS_KNOWN 1 /* the C library has read the features of the processor */
#else
#include <cpuid.h>
#define PROCESSOR_IS_KNOWN 0
#endif
#else
#define PROCESSOR_IS_KNOWN 1
#endif

/* Number of blocks to hash before the features of the processor are read, which can be slow. */
#define ASK_AFTER_BLOCKS (PROCESSOR_IS_KNOWN ? 0 : (64 * 1024) / SHA256_BLOCK)

typedef void sha256_blocks(uint32_t state[8], const uint8_t *p, size_t n);

/* The implementation; NULL until it is chosen. Relaxed ordering is enough: every possible value
 * gives correct results. */
static _Atomic(sha256_blocks *) chosen;

/* FIPS 180-4, 5.3.3 and 4.2.2 */
static const uint32_t H0[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};
const uint32_t sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

/* The functions of FIPS 180-4, 4.1.2 */
static inline uint32_t rotate_right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static inline uint32_t choose_bits(uint32_t e, uint32_t f, uint32_t g)
{
	return g ^ (e & (f ^ g));
}

static inline uint32_t majority_bits(uint32_t a, uint32_t b, uint32_t c)
{
	return (a & b) | (c & (a | b));
}

static inline uint32_t big_sigma0(uint32_t a)
{
	return rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
}

static inline uint32_t big_sigma1(uint32_t e)
{
	return rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
}

static inline uint32_t small_sigma0(uint32_t w)
{
	return rotate_right(w, 7) ^ rotate_right(w, 18) ^ w >> 3;
}

static inline uint32_t small_sigma1(uint32_t w)
{
	return rotate_right(w, 17) ^ rotate_right(w, 19) ^ w >> 10;
}

/* w[] is a ring of the last sixteen words of the schedule. */
static inline uint32_t schedule_word(uint32_t w[16], size_t t)
{
	if (t >= 16) {
		w[t % 16] += small_sigma1(w[(t + 14) % 16]) + w[(t + 9) % 16] +
		             small_sigma0(w[(t + 1) % 16]);
	}
	return w[t % 16];
}

/* One round. The caller rotates the names of the eight variables instead of moving their values. */
#define ROUND(a, b, c, d, e, f, g, h, t)                                                           \
	do {                                                                                       \
		uint32_t t1 = (h) + big_sigma1(e) + choose_bits(e, f, g) + sha256_k[t] +           \
		              schedule_word(w, t);                                                 \
		(d) += t1;                                                                         \
		(h) = t1 + big_sigma0(a) + majority_bits(a, b, c);                                 \
	} while (0)

static void one_block(uint32_t state[8], const uint8_t *p)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t w[16];

	memcpy(w, p, sizeof(w));
#pragma GCC unroll 16
	for (size_t i = 0; i < 16; i++) {
		w[i] = be32toh(w[i]);
	}
#pragma GCC unroll 8
	for (size_t t = 0; t < 64; t += 8) {
		ROUND(a, b, c, d, e, f, g, h, t);
		ROUND(h, a, b, c, d, e, f, g, t + 1);
		ROUND(g, h, a, b, c, d, e, f, t + 2);
		ROUND(f, g, h, a, b, c, d, e, t + 3);
		ROUND(e, f, g, h, a, b, c, d, t + 4);
		ROUND(d, e, f, g, h, a, b, c, t + 5);
		ROUND(c, d, e, f, g, h, a, b, t + 6);
		ROUND(b, c, d, e, f, g, h, a, t + 7);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_blocks_portable(uint32_t state[8], const uint8_t *p, size_t n)
{
	for (; n > 0; n--, p += SHA256_BLOCK) {
		one_block(state, p);
	}
}

static sha256_blocks *pick_fastest(void)
{
#if defined(__x86_64__)
#if PROCESSOR_IS_KNOWN
	bool sha =
	        CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SSSE3);
#else
	unsigned a, b = 0, c = 0, d;
	bool sha = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0 &&
	           (c & bit_SSSE3) != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
	           (b & bit_SHA) != 0;
#endif
	if (sha) {
		return sha256_blocks_x86;
	}
#endif
	return sha256_blocks_portable;
}

bool sha256_accelerate(void)
{
	sha256_blocks *f = pick_fastest();

	atomic_store_explicit(&chosen, f, memory_order_relaxed);
	return f != sha256_blocks_portable;
}

void sha256_portable(void)
{
	atomic_store_explicit(&chosen, sha256_blocks_portable, memory_order_relaxed);
}

/* Hashes blocks while no implementation is chosen: with plain C for the first ASK_AFTER_BLOCKS
 * blocks, then it chooses an implementation. */
static void hash_undecided(uint32_t state[8], const uint8_t *p, size_t n)
{
	static atomic_size_t hashed;
	size_t before = atomic_fetch_add_explicit(&hashed, n, memory_order_relaxed);

	if (before + n > ASK_AFTER_BLOCKS) {
		(void)sha256_accelerate();
		atomic_load_explicit(&chosen, memory_order_relaxed)(state, p, n);
	} else {
		sha256_blocks_portable(state, p, n);
	}
}

static void hash_blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
	sha256_blocks *f = atomic_load_explicit(&chosen, memory_order_relaxed);

	(f != NULL ? f : hash_undecided)(state, p, n);
}

void sha256_init(struct sha256 *s)
{
	memcpy(s->state, H0, sizeof(s->state));
	s->bytes = 0;
}

void sha256_update(struct sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t held = s->bytes % SHA256_BLOCK;

	s->bytes += len;
	if (held > 0) {
		size_t n = len < SHA256_BLOCK - held ? len : SHA256_BLOCK - held;
		if (n > 0) {
			memcpy(s->block + held, p, n);
		}
		if (held + n < SHA256_BLOCK) {
			return;
		}
		hash_blocks(s->state, s->block, 1);
		p += n;
		len -= n;
	}
	if (len >= SHA256_BLOCK) {
		hash_blocks(s->state, p, len / SHA256_BLOCK);
		p += len - len % SHA256_BLOCK;
		len %= SHA256_BLOCK;
	}
	if (len > 0) {
		memcpy(s->block, p, len);
	}
}

void sha256_final(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
	uint8_t tail[2 * SHA256_BLOCK] = { 0 };
	size_t held = s->bytes % SHA256_BLOCK;
	size_t blocks = held + 1 + sizeof(uint64_t) > SHA256_BLOCK ? 2 : 1;
	uint64_t bits = htobe64(s->bytes * 8);

	memcpy(tail, s->block, held);
	tail[held] = 0x80;
	memcpy(tail + blocks * SHA256_BLOCK - sizeof(bits), &bits, sizeof(bits));
	hash_blocks(s->state, tail, blocks);
	for (size_t i = 0; i < 8; i++) {
		uint32_t w = htobe32(s->state[i]);
		memcpy(ret + 4 * i, &w, sizeof(w));
	}
}

void sha256(const void *data, size_t len, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, data, len);
	sha256_final(&s, ret);
}
