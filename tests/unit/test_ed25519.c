/* Ed25519: the vectors of RFC 8032, OpenSSL's word in both directions, and
 * what a strict verifier refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "base/ed25519.h"
#include "base/ed25519_table.h"
#include "base/ge25519.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/sc25519.h"
#include "ed25519_vectors.h"
#include "libcrypto.h"

static struct libcrypto crypto;

static int setup(void **state)
{
	(void)state;
	return libcrypto_load(&crypto);
}

static void random_bytes(void *p, size_t n)
{
	assert_int_equal(getrandom(p, n, 0), n);
}

static size_t from_hex(const char *hex, uint8_t *ret)
{
	assert_int_equal(hex_decode(hex, strlen(hex), ret, strlen(hex) / 2), 0);
	return strlen(hex) / 2;
}

static void vectors_of_the_rfc(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(VECTORS); i++) {
		uint8_t seed[32], public[32], message[1024], signature[64], ours[64];
		struct ed25519_key key;

		from_hex(VECTORS[i].seed, seed);
		from_hex(VECTORS[i].public, public);
		from_hex(VECTORS[i].signature, signature);
		size_t len = from_hex(VECTORS[i].message, message);
		ed25519_key_init(&key, seed);
		assert_memory_equal(key.public, public, 32);
		ed25519_sign(&key, message, len, ours);
		assert_memory_equal(ours, signature, 64);
		assert_true(ed25519_verify(public, message, len, signature));
	}
}

static void the_key_is_wiped(void **state)
{
	static const struct ed25519_key zero;
	uint8_t seed[32] = { 1 };
	struct ed25519_key key;

	(void)state;
	ed25519_key_init(&key, seed);
	assert_memory_not_equal(&key, &zero, sizeof(key));
	ed25519_key_done(&key);
	assert_memory_equal(&key, &zero, sizeof(key));
}

static void the_signature_may_overwrite_the_message(void **state)
{
	uint8_t seed[32] = { 7 }, both[64] = { 9 }, apart[64];
	struct ed25519_key key;

	(void)state;
	ed25519_key_init(&key, seed);
	ed25519_sign(&key, both, 64, apart);
	ed25519_sign(&key, both, 64, both);
	assert_memory_equal(both, apart, 64);
}

static void flip(uint8_t *bytes, size_t bit)
{
	bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
}

/* One bit of the signature, the key or the message: no longer valid. */
static void any_flipped_bit_is_noticed(void **state)
{
	uint8_t seed[32], message[32], signature[64];
	struct ed25519_key key;

	(void)state;
	random_bytes(seed, sizeof(seed));
	random_bytes(message, sizeof(message));
	ed25519_key_init(&key, seed);
	ed25519_sign(&key, message, sizeof(message), signature);
	const struct {
		uint8_t *bytes;
		size_t n;
	} parts[] = { { signature, 64 }, { key.public, 32 }, { message, 32 } };
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		for (size_t bit = 0; bit < 8 * parts[i].n; bit++) {
			flip(parts[i].bytes, bit);
			assert_false(ed25519_verify(key.public, message, 32, signature));
			flip(parts[i].bytes, bit);
		}
	}
	assert_true(ed25519_verify(key.public, message, 32, signature));
	assert_false(ed25519_verify(key.public, message, 31, signature));
}

static void openssl_sign(const uint8_t seed[32], const uint8_t *m, size_t len, uint8_t public[32],
                         uint8_t signature[64])
{
	void *key = crypto.private_key(EVP_PKEY_ED25519, NULL, seed, 32);
	void *ctx = crypto.ctx_new();
	size_t n = 64, np = 32;

	assert_non_null(key);
	assert_non_null(ctx);
	assert_int_equal(crypto.get_public(key, public, &np), 1);
	assert_int_equal(crypto.sign_init(ctx, NULL, NULL, NULL, key), 1);
	assert_int_equal(crypto.sign(ctx, signature, &n, m, len), 1);
	crypto.ctx_free(ctx);
	crypto.key_free(key);
}

static bool openssl_verify(const uint8_t public[32], const uint8_t *m, size_t len,
                           const uint8_t signature[64])
{
	void *key = crypto.public_key(EVP_PKEY_ED25519, NULL, public, 32);
	void *ctx = crypto.ctx_new();
	bool good = key != NULL && ctx != NULL &&
	            crypto.verify_init(ctx, NULL, NULL, NULL, key) == 1 &&
	            crypto.verify(ctx, signature, 64, m, len) == 1;

	crypto.ctx_free(ctx);
	crypto.key_free(key);
	return good;
}

static void openssl_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < 300; i++) {
		uint8_t seed[32], message[300], public[32], theirs[64], ours[64];
		struct ed25519_key key;

		random_bytes(seed, sizeof(seed));
		random_bytes(message, sizeof(message));
		openssl_sign(seed, message, i, public, theirs);
		ed25519_key_init(&key, seed);
		assert_memory_equal(key.public, public, 32);
		ed25519_sign(&key, message, i, ours);
		assert_memory_equal(ours, theirs, 64);
		assert_true(ed25519_verify(public, message, i, theirs));
		flip(theirs, i % 512);
		assert_false(ed25519_verify(public, message, i, theirs));
		assert_false(openssl_verify(public, message, i, theirs));
	}
}

/* Seeds and hashes at the edges of their ranges. */
static void openssl_agrees_on_extreme_seeds(void **state)
{
	static const uint8_t fill[] = { 0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		uint8_t seed[32], public[32], theirs[64], ours[64];
		struct ed25519_key key;

		memset(seed, fill[i], sizeof(seed));
		openssl_sign(seed, seed, 32, public, theirs);
		ed25519_key_init(&key, seed);
		ed25519_sign(&key, seed, 32, ours);
		assert_memory_equal(key.public, public, 32);
		assert_memory_equal(ours, theirs, 64);
	}
}

/* S + L signs the same message, for a verifier that takes it. */
static void a_second_spelling_of_s_is_refused(void **state)
{
	uint8_t seed[32] = { 3 }, signature[64];
	struct ed25519_key key;
	uint64_t order[4];
	unsigned carry = 0;

	(void)state;
	ed25519_key_init(&key, seed);
	ed25519_sign(&key, "m", 1, signature);
	assert_true(ed25519_verify(key.public, "m", 1, signature));
	memcpy(order, ed25519_order, sizeof(order));
	for (size_t i = 0; i < 32; i++) {
		carry += signature[32 + i] + (unsigned)(order[i / 8] >> 8 * (i % 8) & 0xff);
		signature[32 + i] = (uint8_t)carry;
		carry >>= 8;
	}
	assert_false(ed25519_verify(key.public, "m", 1, signature));
}

static void scalars_are_below_the_order(void **state)
{
	uint8_t s[32];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (size_t b = 0; b < 8; b++) {
			s[8 * i + b] = (uint8_t)(ed25519_order[i] >> 8 * b);
		}
	}
	assert_int_equal(s[0], 0xed); /* the order of RFC 8032, 5.1 */
	assert_int_equal(s[31], 0x10);
	assert_false(sc_is_canonical(s));
	s[0] = 0xec;
	assert_true(sc_is_canonical(s));
	memset(s, 0xff, sizeof(s));
	assert_false(sc_is_canonical(s));
	memset(s, 0, sizeof(s));
	assert_true(sc_is_canonical(s));
}

/* The encodings of the eight points of small order, by RFC 8032's own rule:
 * y = 1, -1, 0 and the two of order 8, each sign. Then what a lax decoder
 * would read as one of them, or as another point: y not below p, and x = 0
 * with a sign. */
static const struct encoding {
	const char *hex;
	bool decodes;
} SMALL[] = {
	{ "0100000000000000000000000000000000000000000000000000000000000000", true },
	{ "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", true },
	{ "0000000000000000000000000000000000000000000000000000000000000000", true },
	{ "0000000000000000000000000000000000000000000000000000000000000080", true },
	{ "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", true },
	{ "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85", true },
	{ "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", true },
	{ "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", true },
	{ "0100000000000000000000000000000000000000000000000000000000000080", false },
	{ "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false },
	{ "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", false },
	{ "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false },
	{ "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", false },
	{ "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false },
	{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", false },
	{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false },
};

static void points_have_one_spelling(void **state)
{
	uint8_t b[32], again[32];
	struct ge p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(SMALL); i++) {
		from_hex(SMALL[i].hex, b);
		assert_int_equal(ge_decode(b, &p), SMALL[i].decodes ? 0 : -1);
		if (SMALL[i].decodes) {
			ge_encode(&p, again);
			assert_memory_equal(b, again, 32);
			assert_true(ge_is_small(&p));
		}
	}
	/* 3 to 18 above p - 19 .. 2^255 - 1: never, though some are on the curve. */
	memset(b, 0xff, sizeof(b));
	b[31] = 0x7f;
	for (unsigned low = 0xed; low <= 0xff; low++) {
		b[0] = (uint8_t)low;
		assert_int_equal(ge_decode(b, &p), -1);
	}
	/* The control: the same y below p is a point for some. */
	unsigned points = 0;
	memset(b, 0, sizeof(b));
	for (unsigned low = 0; low <= 18; low++) {
		b[0] = (uint8_t)low;
		points += ge_decode(b, &p) == 0;
	}
	assert_true(points > 4);
}

/* With A of small order and R = sB - kA any message has "signatures": R = B,
 * s = 1 holds whenever kA is neutral. */
static void small_keys_sign_nothing(void **state)
{
	uint8_t one[32] = { 1 }, public[32], signature[64] = { 0 };
	struct ge b, a, kb;

	(void)state;
	ge_mul_base(one, &b);
	ge_encode(&b, signature);
	signature[32] = 1;
	/* The control: the equation itself holds for A = neutral. */
	from_hex(SMALL[0].hex, public);
	assert_int_equal(ge_decode(public, &a), 0);
	ge_mul_vartime(one, &a, &kb);
	ge_add(&kb, &b, &kb);
	uint8_t sum[32];
	ge_encode(&kb, sum);
	assert_memory_equal(sum, signature, 32);
	for (size_t i = 0; i < ARRAY_LEN(SMALL); i++) {
		from_hex(SMALL[i].hex, public);
		for (unsigned m = 0; m < 16; m++) { /* one in eight would hold */
			uint8_t message = (uint8_t)m;
			assert_false(ed25519_verify(public, &message, 1, signature));
		}
	}
}

/* Every entry of the built table, by additions of ours: (j+1) * 256^i * B. */
static void the_table_is_right(void **state)
{
	uint8_t one[32] = { 1 };
	struct ge point, multiple;

	(void)state;
	ge_mul_base(one, &point);
	uint8_t base[32], expected[32];
	from_hex("5866666666666666666666666666666666666666666666666666666666666666", expected);
	ge_encode(&point, base);
	assert_memory_equal(base, expected, 32);
	for (size_t i = 0; i < 32; i++) {
		multiple = point;
		for (size_t j = 0; j < 8; j++) {
			struct fe inverse, x, y, want[3];
			fe_invert(&inverse, &multiple.z);
			fe_mul(&x, &multiple.x, &inverse);
			fe_mul(&y, &multiple.y, &inverse);
			fe_add(&want[0], &y, &x);
			fe_sub(&want[1], &y, &x);
			fe_mul(&want[2], &x, &y);
			fe_mul(&want[2], &want[2], &ed25519_2d);
			for (size_t k = 0; k < 3; k++) {
				struct fe entry = fe_from_words(ed25519_base[i][j][k]);
				uint8_t a[32], b[32];
				fe_to_bytes(&entry, a);
				fe_to_bytes(&want[k], b);
				assert_memory_equal(a, b, 32);
			}
			ge_add(&multiple, &multiple, &point);
		}
		for (int k = 0; k < 8; k++) {
			ge_double(&point, &point);
		}
	}
}

/* The constant time way and the other one: same points. */
static void both_multiplications_agree(void **state)
{
	uint8_t one[32] = { 1 }, s[32], a[32], b[32];
	struct ge base, p, q;

	(void)state;
	ge_mul_base(one, &base);
	for (size_t i = 0; i < 64; i++) {
		random_bytes(s, sizeof(s));
		if (i < 4) { /* digits of 8 and 15 everywhere, nothing, all ones */
			memset(s, (int[]){ 0x88, 0xff, 0x00, 0x77 }[i], sizeof(s));
		}
		s[31] &= 0x7f;
		ge_mul_base(s, &p);
		ge_mul_vartime(s, &base, &q);
		ge_encode(&p, a);
		ge_encode(&q, b);
		assert_memory_equal(a, b, 32);
	}
}

/* Field elements at the edges, in and out; and a * 1/a = 1. */
static void field_edges(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "0000000000000000000000000000000000000000000000000000000000000000" },
		{ "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f" },
		{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "1200000000000000000000000000000000000000000000000000000000000000" },
		{ "0000000000000000000000000000000000000000000000000000000000000080",
		  "0000000000000000000000000000000000000000000000000000000000000000" },
	};
	uint8_t b[32], want[32], got[32];
	struct fe a, inverse;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		from_hex(rows[i].in, b);
		from_hex(rows[i].out, want);
		a = fe_from_bytes(b);
		fe_to_bytes(&a, got);
		assert_memory_equal(got, want, 32);
	}
	/* The largest limbs that a product takes: (2^54 - 1 in each) squared both
	 * ways. */
	a = (struct fe){ { 0x3fffffffffffff, 0x3fffffffffffff, 0x3fffffffffffff, 0x3fffffffffffff,
		           0x3fffffffffffff } };
	struct fe square, product, reduced = a;
	fe_square(&square, &a);
	fe_mul(&product, &a, &a);
	fe_to_bytes(&square, got);
	fe_to_bytes(&product, want);
	assert_memory_equal(got, want, 32);
	fe_sub(&reduced, &a, &FE_ZERO);
	fe_mul(&product, &reduced, &reduced);
	fe_to_bytes(&product, want);
	assert_memory_equal(got, want, 32);
	for (int i = 0; i < 50; i++) {
		random_bytes(b, sizeof(b));
		a = fe_from_bytes(b);
		fe_invert(&inverse, &a);
		fe_mul(&a, &a, &inverse);
		fe_to_bytes(&a, got);
		memset(want, 0, sizeof(want));
		want[0] = 1;
		assert_memory_equal(got, want, 32);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_rfc),
		cmocka_unit_test(the_key_is_wiped),
		cmocka_unit_test(the_signature_may_overwrite_the_message),
		cmocka_unit_test(any_flipped_bit_is_noticed),
		cmocka_unit_test(openssl_agrees),
		cmocka_unit_test(openssl_agrees_on_extreme_seeds),
		cmocka_unit_test(a_second_spelling_of_s_is_refused),
		cmocka_unit_test(scalars_are_below_the_order),
		cmocka_unit_test(points_have_one_spelling),
		cmocka_unit_test(small_keys_sign_nothing),
		cmocka_unit_test(the_table_is_right),
		cmocka_unit_test(both_multiplications_agree),
		cmocka_unit_test(field_edges),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
