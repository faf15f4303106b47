/* test_ed25519.c - Ed25519: the vectors of RFC 8032, agreement with OpenSSL in both directions, and
 * signatures that a strict verifier must refuse. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "unit.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "base/own.h"
#include "ed25519_vectors.h"
#include "libcrypto.h"

static struct libcrypto crypto;

static int setup(void **state)
{
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

	ed25519_key_init(&key, seed);
	assert_memory_not_equal(&key, &zero, sizeof(key));
	ed25519_key_done(&key);
	assert_memory_equal(&key, &zero, sizeof(key));
}

static void the_signature_may_overwrite_the_message(void **state)
{
	uint8_t seed[32] = { 7 }, both[64] = { 9 }, apart[64];
	struct ed25519_key key;

	ed25519_key_init(&key, seed);
	ed25519_sign(&key, both, 64, apart);
	ed25519_sign(&key, both, 64, both);
	assert_memory_equal(both, apart, 64);
}

static void flip(uint8_t *bytes, size_t bit)
{
	bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1U << bit % 8);
}

/* A signature is not valid after a change of one bit in the signature, the key or the message. */
static void any_flipped_bit_is_noticed(void **state)
{
	uint8_t seed[32], message[32], signature[64];
	struct ed25519_key key;

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

/* OpenSSL makes the same keys and signatures for seeds with extreme values. */
static void openssl_agrees_on_extreme_seeds(void **state)
{
	static const uint8_t fill[] = { 0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff };

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

/* The group order L of RFC 8032, 5.1, in little endian. */
#define ORDER "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"

/* If S satisfies the equation, S + L does, too. A lax verifier accepts both; ours must refuse S +
 * L. */
static void a_second_spelling_of_s_is_refused(void **state)
{
	uint8_t seed[32] = { 3 }, order[32], signature[64];
	struct ed25519_key key;
	unsigned carry = 0;

	ed25519_key_init(&key, seed);
	ed25519_sign(&key, "m", 1, signature);
	assert_true(ed25519_verify(key.public, "m", 1, signature));
	from_hex(ORDER, order);
	for (size_t i = 0; i < 32; i++) {
		carry += (unsigned)signature[32 + i] + order[i];
		signature[32 + i] = (uint8_t)carry;
		carry >>= 8;
	}
	assert_false(ed25519_verify(key.public, "m", 1, signature));
}

/* Public keys of small order. First come the canonical encodings of the eight points: y = 1, -1, 0
 * and the two of order 8, with each sign. Then come encodings that a lax decoder would read as one
 * of these points: y not below p, or x = 0 with a sign. */
static const char *const SMALL[] = {
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
};

#define BASE_POINT "5866666666666666666666666666666666666666666666666666666666666666"

/* Keys of small order must be refused. If A has small order and R = sB - kA, any message has a
 * "signature": R = B, s = 1 is valid whenever kA is neutral. The control is OpenSSL, which accepts
 * it. */
static void small_keys_sign_nothing(void **state)
{
	uint8_t public[32], signature[64] = { 0 };

	from_hex(BASE_POINT, signature);
	signature[32] = 1;
	for (size_t i = 0; i < ARRAY_LEN(SMALL); i++) {
		unsigned lax = 0;

		from_hex(SMALL[i], public);
		for (unsigned m = 0; m < 64; m++) { /* for one k in eight, kA is neutral */
			uint8_t message = (uint8_t)m;
			lax += openssl_verify(public, &message, 1, signature);
			assert_false(ed25519_verify(public, &message, 1, signature));
		}
		assert_true(lax > 0);
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
		cmocka_unit_test(small_keys_sign_nothing),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
