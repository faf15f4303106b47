/* fe25519.h - the field of integers modulo p = 2^255 - 19, in constant time.
 *
 * Five limbs of 51 bits. A product or difference is *tight*: every limb below
 * 2^51 + 2^15. fe_add() does not carry: its result may be multiplied, or be
 * either side of a difference, but no limb may reach 2^54. A sum of at most
 * four tight elements never does. */
#ifndef BASE_FE25519_H
#define BASE_FE25519_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ct.h"

struct fe {
	uint64_t v[5];
};

#define FE_ZERO ((struct fe){ { 0 } })
#define FE_ONE  ((struct fe){ { 1 } })

/* From four words, lowest first; the highest bit is left out. */
struct fe fe_from_words(const uint64_t w[4]);
/* From 32 bytes, little-endian; the highest bit is left out. What is not below
 * p is taken modulo p: compare with fe_to_bytes() where that matters. */
struct fe fe_from_bytes(const uint8_t b[32]);
void fe_to_bytes(const struct fe *a, uint8_t ret[32]); /* the one below p */

void fe_mul(struct fe *r, const struct fe *a, const struct fe *b);
void fe_square(struct fe *r, const struct fe *a);
void fe_invert(struct fe *r, const struct fe *a); /* 0 for 0 */
/* a^((p - 5) / 8), the heart of a square root. */
void fe_pow_p58(struct fe *r, const struct fe *a);

bool fe_is_zero(const struct fe *a);
/* The lowest bit of the one below p: the "sign" of RFC 8032. */
unsigned fe_parity(const struct fe *a);

static inline void fe_add(struct fe *r, const struct fe *a, const struct fe *b)
{
	for (int i = 0; i < 5; i++) {
		r->v[i] = a->v[i] + b->v[i];
	}
}

/* b: one tight element, or the sum of two. */
void fe_sub(struct fe *r, const struct fe *a, const struct fe *b);

/* r = flag ? a : r, without a branch; flag is 0 or 1. */
static inline void fe_cmov(struct fe *r, const struct fe *a, uint64_t flag)
{
	uint64_t mask = ct_mask(flag);

	for (int i = 0; i < 5; i++) {
		r->v[i] ^= mask & (r->v[i] ^ a->v[i]);
	}
}

#endif
