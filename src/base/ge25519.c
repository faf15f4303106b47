#include "base/ge25519.h"

#include <stddef.h>
#include <string.h>

#include "base/ct.h"
#include "base/ed25519_table.h"
#include "base/sc25519.h"

/* What an addition needs of an affine point that is known beforehand. */
struct ge_known {
	struct fe y_plus_x, y_minus_x, xy2d;
};

static const struct ge NEUTRAL = { .y = { { 1 } }, .z = { { 1 } } };

int ge_decode(const uint8_t b[32], struct ge *ret)
{
	struct ge p = { .y = fe_from_bytes(b), .z = FE_ONE };
	struct fe u, v, v3, t;
	uint8_t again[32];
	unsigned sign = b[31] >> 7;

	fe_to_bytes(&p.y, again);
	again[31] |= (uint8_t)(sign << 7);
	if (memcmp(again, b, sizeof(again)) != 0) {
		return -1; /* y is not below p */
	}
	/* x^2 = u/v with u = y^2 - 1, v = dy^2 + 1; a candidate for its root is
	 * u v^3 (u v^7)^((p-5)/8). */
	fe_square(&t, &p.y);
	fe_sub(&u, &t, &FE_ONE);
	fe_mul(&v, &t, &ed25519_d);
	fe_add(&v, &v, &FE_ONE);
	fe_square(&v3, &v);
	fe_mul(&v3, &v3, &v);
	fe_square(&t, &v3);
	fe_mul(&t, &t, &v);
	fe_mul(&t, &t, &u);
	fe_pow_p58(&t, &t);
	fe_mul(&t, &t, &v3);
	fe_mul(&p.x, &t, &u);
	/* It is the root of u/v or of -u/v, if there is one. */
	fe_square(&t, &p.x);
	fe_mul(&t, &t, &v);
	fe_sub(&v3, &t, &u);
	if (!fe_is_zero(&v3)) {
		fe_add(&v3, &t, &u);
		if (!fe_is_zero(&v3)) {
			return -1;
		}
		fe_mul(&p.x, &p.x, &ed25519_sqrt_m1);
	}
	if (fe_parity(&p.x) != sign) {
		if (fe_is_zero(&p.x)) {
			return -1;
		}
		fe_sub(&p.x, &FE_ZERO, &p.x);
	}
	fe_mul(&p.t, &p.x, &p.y);
	*ret = p;
	return 0;
}

void ge_encode(const struct ge *p, uint8_t ret[32])
{
	struct fe inverse, x, y;

	fe_invert(&inverse, &p->z);
	fe_mul(&x, &p->x, &inverse);
	fe_mul(&y, &p->y, &inverse);
	fe_to_bytes(&y, ret);
	ret[31] = (uint8_t)(ret[31] | fe_parity(&x) << 7);
}

/* The end of every addition: from E, F, G, H as the RFC calls them. */
static void ge_finish(struct ge *r, const struct fe *e, const struct fe *f, const struct fe *g,
                      const struct fe *h)
{
	fe_mul(&r->x, e, f);
	fe_mul(&r->y, g, h);
	fe_mul(&r->t, e, h);
	fe_mul(&r->z, f, g);
}

/* The middle: A and B are the products, C = 2d T1 T2, D = 2 Z1 Z2. */
static void ge_combine(struct ge *r, const struct fe *a, const struct fe *b, const struct fe *c,
                       const struct fe *d)
{
	struct fe e, f, g, h;

	fe_sub(&e, b, a);
	fe_sub(&f, d, c);
	fe_add(&g, d, c);
	fe_add(&h, b, a);
	ge_finish(r, &e, &f, &g, &h);
}

void ge_add(struct ge *r, const struct ge *p, const struct ge *q)
{
	struct fe a, b, c, d, t;

	fe_sub(&a, &p->y, &p->x);
	fe_sub(&t, &q->y, &q->x);
	fe_mul(&a, &a, &t);
	fe_add(&b, &p->y, &p->x);
	fe_add(&t, &q->y, &q->x);
	fe_mul(&b, &b, &t);
	fe_mul(&c, &p->t, &q->t);
	fe_mul(&c, &c, &ed25519_2d);
	fe_mul(&d, &p->z, &q->z);
	fe_add(&d, &d, &d);
	ge_combine(r, &a, &b, &c, &d);
}

static void ge_add_known(struct ge *r, const struct ge *p, const struct ge_known *q)
{
	struct fe a, b, c, d;

	fe_sub(&a, &p->y, &p->x);
	fe_mul(&a, &a, &q->y_minus_x);
	fe_add(&b, &p->y, &p->x);
	fe_mul(&b, &b, &q->y_plus_x);
	fe_mul(&c, &p->t, &q->xy2d);
	fe_add(&d, &p->z, &p->z);
	ge_combine(r, &a, &b, &c, &d);
}

void ge_double(struct ge *r, const struct ge *p)
{
	struct fe a, b, c, e, f, g, h;

	fe_square(&a, &p->x);
	fe_square(&b, &p->y);
	fe_square(&c, &p->z);
	fe_add(&c, &c, &c);
	fe_add(&h, &a, &b);
	fe_add(&e, &p->x, &p->y);
	fe_square(&e, &e);
	fe_sub(&e, &h, &e);
	fe_sub(&g, &a, &b);
	fe_add(&f, &c, &g);
	ge_finish(r, &e, &f, &g, &h);
}

void ge_negate(struct ge *p)
{
	fe_sub(&p->x, &FE_ZERO, &p->x);
	fe_sub(&p->t, &FE_ZERO, &p->t);
}

bool ge_is_small(const struct ge *p)
{
	struct ge r;

	ge_double(&r, p);
	ge_double(&r, &r);
	ge_double(&r, &r);
	return fe_is_zero(&r.x); /* 8p has odd order: x = 0 is the neutral one */
}

/* digit * 256^i * B. Reads the whole row, so that neither the caches nor the
 * branch predictor learn which entry it was. */
static void ge_select(struct ge_known *r, size_t i, int digit)
{
	uint64_t words[3][4] = { { 1 }, { 1 }, { 0 } }; /* the neutral point */
	uint64_t negative = (uint64_t)(unsigned)digit >> 31;
	unsigned size = (unsigned)digit ^ (0U - (unsigned)negative);
	struct fe minus, plus;

	size += (unsigned)negative;
	for (unsigned j = 0; j < 8; j++) {
		uint64_t mask = ct_mask(((size ^ (j + 1)) - 1U) >> 31);
		const uint64_t(*entry)[4] = ed25519_base[i][j];
		for (int k = 0; k < 3; k++) {
			for (int w = 0; w < 4; w++) {
				words[k][w] ^= mask & (words[k][w] ^ entry[k][w]);
			}
		}
	}
	r->y_plus_x = plus = fe_from_words(words[0]);
	r->y_minus_x = fe_from_words(words[1]);
	r->xy2d = fe_from_words(words[2]);
	fe_sub(&minus, &FE_ZERO, &r->xy2d);
	fe_cmov(&r->y_plus_x, &r->y_minus_x, negative);
	fe_cmov(&r->y_minus_x, &plus, negative);
	fe_cmov(&r->xy2d, &minus, negative);
}

void ge_mul_base(const uint8_t s[32], struct ge *ret)
{
	int8_t digits[64];
	struct ge_known known;
	struct ge r = NEUTRAL;

	/* The odd digits, times 16, and the even ones: half the table. */
	sc_digits(s, digits);
	for (size_t i = 0; i < 32; i++) {
		ge_select(&known, i, digits[2 * i + 1]);
		ge_add_known(&r, &r, &known);
	}
	for (int i = 0; i < 4; i++) {
		ge_double(&r, &r);
	}
	for (size_t i = 0; i < 32; i++) {
		ge_select(&known, i, digits[2 * i]);
		ge_add_known(&r, &r, &known);
	}
	*ret = r;
	explicit_bzero(digits, sizeof(digits));
	explicit_bzero(&known, sizeof(known));
}

void ge_mul_vartime(const uint8_t s[32], const struct ge *p, struct ge *ret)
{
	struct ge multiple[16], r = NEUTRAL;

	multiple[0] = NEUTRAL;
	for (size_t i = 1; i < 16; i++) {
		ge_add(&multiple[i], &multiple[i - 1], p);
	}
	for (size_t i = 64; i-- > 0;) {
		unsigned digit = (unsigned)s[i / 2] >> 4 * (i % 2) & 15U;
		for (int k = 0; k < 4; k++) {
			ge_double(&r, &r);
		}
		if (digit != 0) {
			ge_add(&r, &r, &multiple[digit]);
		}
	}
	*ret = r;
}
