#include "base/fe25519.h"

#include <endian.h>
#include <string.h>

typedef unsigned __int128 u128;

#define LIMB_BITS 51
#define LIMB_MASK ((UINT64_C(1) << LIMB_BITS) - 1)

struct fe fe_from_words(const uint64_t w[4])
{
	return (struct fe){ { w[0] & LIMB_MASK, (w[0] >> 51 | w[1] << 13) & LIMB_MASK,
		              (w[1] >> 38 | w[2] << 26) & LIMB_MASK,
		              (w[2] >> 25 | w[3] << 39) & LIMB_MASK, w[3] >> 12 & LIMB_MASK } };
}

struct fe fe_from_bytes(const uint8_t b[32])
{
	uint64_t w[4];

	memcpy(w, b, sizeof(w));
	for (int i = 0; i < 4; i++) {
		w[i] = le64toh(w[i]);
	}
	return fe_from_words(w);
}

/* Every limb's excess to the next; 2^255 is 19. */
static void fe_carry(struct fe *a)
{
	uint64_t c = 0;

	for (int i = 0; i < 5; i++) {
		a->v[i] += c;
		c = a->v[i] >> LIMB_BITS;
		a->v[i] &= LIMB_MASK;
	}
	a->v[0] += 19 * c;
}

void fe_to_bytes(const struct fe *a, uint8_t ret[32])
{
	struct fe t = *a;
	uint64_t q = 19, c;

	fe_carry(&t);
	fe_carry(&t); /* now below 2p */
	/* 1 if t is p or more, which is if t + 19 reaches 2^255 */
	for (int i = 0; i < 5; i++) {
		q = (t.v[i] + q) >> LIMB_BITS;
	}
	/* t - qp is t + 19q without the bit of 2^255 */
	c = 19 * q;
	for (int i = 0; i < 5; i++) {
		t.v[i] += c;
		c = t.v[i] >> LIMB_BITS;
		t.v[i] &= LIMB_MASK;
	}
	uint64_t w[4] = { t.v[0] | t.v[1] << 51, t.v[1] >> 13 | t.v[2] << 38,
		          t.v[2] >> 26 | t.v[3] << 25, t.v[3] >> 39 | t.v[4] << 12 };
	for (int i = 0; i < 4; i++) {
		w[i] = htole64(w[i]);
	}
	memcpy(ret, w, sizeof(w));
}

/* Makes a product tight. With limbs below 2^54 on both sides the sums are
 * below 2^115, the last carry below 2^60, and 19 times that fits. */
static inline void fe_reduce(struct fe *r, u128 h0, u128 h1, u128 h2, u128 h3, u128 h4)
{
	h1 += h0 >> LIMB_BITS;
	h2 += h1 >> LIMB_BITS;
	h3 += h2 >> LIMB_BITS;
	h4 += h3 >> LIMB_BITS;
	uint64_t r0 = ((uint64_t)h0 & LIMB_MASK) + 19 * (uint64_t)(h4 >> LIMB_BITS);
	r->v[0] = r0 & LIMB_MASK;
	r->v[1] = ((uint64_t)h1 & LIMB_MASK) + (r0 >> LIMB_BITS);
	r->v[2] = (uint64_t)h2 & LIMB_MASK;
	r->v[3] = (uint64_t)h3 & LIMB_MASK;
	r->v[4] = (uint64_t)h4 & LIMB_MASK;
}

void fe_mul(struct fe *r, const struct fe *a, const struct fe *b)
{
	uint64_t a0 = a->v[0], a1 = a->v[1], a2 = a->v[2], a3 = a->v[3], a4 = a->v[4];
	uint64_t b0 = b->v[0], b1 = b->v[1], b2 = b->v[2], b3 = b->v[3], b4 = b->v[4];
	/* What lies at 2^255 and above comes back at the bottom, 19 times. */
	uint64_t c1 = 19 * b1, c2 = 19 * b2, c3 = 19 * b3, c4 = 19 * b4;

	u128 h0 = (u128)a0 * b0 + (u128)a1 * c4 + (u128)a2 * c3 + (u128)a3 * c2 + (u128)a4 * c1;
	u128 h1 = (u128)a0 * b1 + (u128)a1 * b0 + (u128)a2 * c4 + (u128)a3 * c3 + (u128)a4 * c2;
	u128 h2 = (u128)a0 * b2 + (u128)a1 * b1 + (u128)a2 * b0 + (u128)a3 * c4 + (u128)a4 * c3;
	u128 h3 = (u128)a0 * b3 + (u128)a1 * b2 + (u128)a2 * b1 + (u128)a3 * b0 + (u128)a4 * c4;
	u128 h4 = (u128)a0 * b4 + (u128)a1 * b3 + (u128)a2 * b2 + (u128)a3 * b1 + (u128)a4 * b0;
	fe_reduce(r, h0, h1, h2, h3, h4);
}

void fe_square(struct fe *r, const struct fe *a)
{
	uint64_t a0 = a->v[0], a1 = a->v[1], a2 = a->v[2], a3 = a->v[3], a4 = a->v[4];
	uint64_t d0 = 2 * a0, d1 = 2 * a1, d2 = 2 * a2, c3 = 19 * a3, c4 = 19 * a4;

	u128 h0 = (u128)a0 * a0 + (u128)d1 * c4 + (u128)d2 * c3;
	u128 h1 = (u128)d0 * a1 + (u128)d2 * c4 + (u128)a3 * c3;
	u128 h2 = (u128)d0 * a2 + (u128)a1 * a1 + (u128)(2 * a3) * c4;
	u128 h3 = (u128)d0 * a3 + (u128)d1 * a2 + (u128)a4 * c4;
	u128 h4 = (u128)d0 * a4 + (u128)d1 * a3 + (u128)a2 * a2;
	fe_reduce(r, h0, h1, h2, h3, h4);
}

void fe_sub(struct fe *r, const struct fe *a, const struct fe *b)
{
	/* Plus 4p, so that no limb falls below zero. */
	r->v[0] = a->v[0] + 4 * (LIMB_MASK - 18) - b->v[0];
	for (int i = 1; i < 5; i++) {
		r->v[i] = a->v[i] + 4 * LIMB_MASK - b->v[i];
	}
	fe_carry(r);
}

static void fe_square_times(struct fe *r, const struct fe *a, int n)
{
	fe_square(r, a);
	while (--n > 0) {
		fe_square(r, r);
	}
}

/* a^(2^250 - 1), and a^11 on the way: exponents of n ones are doubled by
 * shifting them n places and multiplying. */
static void fe_pow_250_ones(struct fe *r, struct fe *ret_11, const struct fe *a)
{
	struct fe t, a2, a9, ones5, ones10, ones20, ones50, ones100;

	fe_square(&a2, a);
	fe_square_times(&t, &a2, 2);
	fe_mul(&a9, &t, a);
	fe_mul(ret_11, &a9, &a2);
	fe_square(&t, ret_11);
	fe_mul(&ones5, &t, &a9); /* 22 + 9 = 31 */
	fe_square_times(&t, &ones5, 5);
	fe_mul(&ones10, &t, &ones5);
	fe_square_times(&t, &ones10, 10);
	fe_mul(&ones20, &t, &ones10);
	fe_square_times(&t, &ones20, 20);
	fe_mul(&t, &t, &ones20); /* 40 */
	fe_square_times(&t, &t, 10);
	fe_mul(&ones50, &t, &ones10);
	fe_square_times(&t, &ones50, 50);
	fe_mul(&ones100, &t, &ones50);
	fe_square_times(&t, &ones100, 100);
	fe_mul(&t, &t, &ones100); /* 200 */
	fe_square_times(&t, &t, 50);
	fe_mul(r, &t, &ones50);
}

void fe_invert(struct fe *r, const struct fe *a)
{
	struct fe t, a11;

	/* p - 2 = (2^250 - 1) * 2^5 + 11 */
	fe_pow_250_ones(&t, &a11, a);
	fe_square_times(&t, &t, 5);
	fe_mul(r, &t, &a11);
}

void fe_pow_p58(struct fe *r, const struct fe *a)
{
	struct fe t, a11, base = *a;

	/* (p - 5) / 8 = (2^250 - 1) * 2^2 + 1 */
	fe_pow_250_ones(&t, &a11, a);
	fe_square_times(&t, &t, 2);
	fe_mul(r, &t, &base);
}

bool fe_is_zero(const struct fe *a)
{
	uint8_t b[32], any = 0;

	fe_to_bytes(a, b);
	for (int i = 0; i < 32; i++) {
		any |= b[i];
	}
	return any == 0;
}

unsigned fe_parity(const struct fe *a)
{
	uint8_t b[32];

	fe_to_bytes(a, b);
	return b[0] & 1U;
}
