/* test_hash.c - SHA-256, hex and base64: the vectors of the standards, input in pieces of each
 * size, each implementation, and agreement with OpenSSL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "unit.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/sha256.h"
#include "libcrypto.h"

#define MILLION_A "1000000 times a"

static uint8_t noise[70000];
static struct libcrypto crypto;

static int setup(void **state)
{
	for (size_t n = 0; n < sizeof(noise);) {
		ssize_t got = getrandom(noise + n, sizeof(noise) - n, 0);
		if (got <= 0) {
			return -1;
		}
		n += (size_t)got;
	}
	return libcrypto_load(&crypto);
}

/* The examples of FIPS 180-4 (SHA256.pdf), and NIST's example of a million letters "a". */
static const struct vector {
	const char *text;
	const char *sha256;
} VECTORS[] = {
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
	  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	{ MILLION_A, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static char *text_of(const struct vector *v, size_t *ret_len)
{
	char *text = strdup(v->text);

	if (strcmp(v->text, MILLION_A) == 0) {
		free(text);
		text = malloc(1000000);
		assert_non_null(text);
		memset(text, 'a', 1000000);
		*ret_len = 1000000;
	} else {
		assert_non_null(text);
		*ret_len = strlen(text);
	}
	return text;
}

static void known_answers(void)
{
	for (size_t i = 0; i < ARRAY_LEN(VECTORS); i++) {
		size_t len;
		auto_free char *text = text_of(&VECTORS[i], &len);
		uint8_t h[32];
		char hex[65];

		sha256(text, len, h);
		hex_encode(h, 32, hex);
		assert_string_equal(hex, VECTORS[i].sha256);
	}
}

static void vectors_of_the_standards(void **state)
{
	known_answers(); /* with the implementation that is used by default */
	sha256_portable();
	known_answers();
	(void)sha256_accelerate();
	known_answers();
}

/* For each length, the hash is the same whether the data comes at once, in two pieces of any size,
 * or byte by byte. */
static void any_split_is_the_same(void **state)
{
	for (size_t len = 0; len <= 300; len++) {
		uint8_t whole[32], pieces[32];
		struct sha256 s;

		sha256(noise, len, whole);
		for (size_t at = 0; at <= len; at++) {
			sha256_init(&s);
			sha256_update(&s, noise, at);
			sha256_update(&s, noise + at, len - at);
			sha256_final(&s, pieces);
			assert_memory_equal(pieces, whole, 32);
		}
		sha256_init(&s);
		for (size_t at = 0; at < len; at++) {
			sha256_update(&s, noise + at, 1);
		}
		sha256_final(&s, pieces);
		assert_memory_equal(pieces, whole, 32);
	}
}

static void nothing_may_be_null(void **state)
{
	uint8_t h[32], empty[32];
	struct sha256 s;

	sha256("", 0, empty);
	sha256(NULL, 0, h);
	assert_memory_equal(h, empty, 32);
	sha256_init(&s);
	sha256_update(&s, "x", 1);
	sha256_update(&s, NULL, 0);
	sha256_final(&s, h);
	sha256("x", 1, empty);
	assert_memory_equal(h, empty, 32);
}

static void accelerated_is_portable(void **state)
{
	bool fast = sha256_accelerate();

#if defined(__x86_64__)
	/* The fast implementation is used if and only if the kernel reports the instructions. */
	auto_file f = fopen("/proc/cpuinfo", "re");
	char line[8192];
	bool told = false;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		told |= strncmp(line, "flags", 5) == 0 && strstr(line, " sha_ni") != NULL;
	}
	assert_int_equal(fast, told);
#else
	assert_false(fast);
#endif
	for (size_t len = 0; len < sizeof(noise) - 64; len = len < 600 ? len + 1 : len * 5 / 3) {
		uint8_t a[32], b[32];
		size_t offset = len % 64; /* so that all alignments occur */

		sha256_portable();
		sha256(noise + offset, len, a);
		(void)sha256_accelerate();
		sha256(noise + offset, len, b);
		assert_memory_equal(a, b, 32);
	}
}

static void openssl_agrees(void **state)
{
	for (size_t len = 0; len < sizeof(noise); len = len < 300 ? len + 1 : len * 7 / 4) {
		uint8_t ours[32], theirs[32];

		sha256(noise, len, ours);
		assert_int_equal(crypto.digest(noise, len, theirs, NULL, crypto.sha256(), NULL), 1);
		assert_memory_equal(ours, theirs, 32);
	}
}

static void hex_there_and_back(void **state)
{
	uint8_t bytes[256], back[256];
	char hex[513], one[3];

	for (unsigned i = 0; i < 256; i++) {
		bytes[i] = (uint8_t)i;
	}
	hex_encode(bytes, sizeof(bytes), hex);
	for (unsigned i = 0; i < 256; i++) {
		snprintf(one, sizeof(one), "%02x", i);
		assert_memory_equal(hex + 2 * i, one, 2);
	}
	assert_int_equal(hex[512], 0);
	assert_int_equal(hex_decode(hex, 512, back, 256), 0);
	assert_memory_equal(bytes, back, 256);
	assert_int_equal(hex_decode("", 0, back, 0), 0);
}

static void hex_is_strict(void **state)
{
	uint8_t back[2] = { 1, 2 };

	for (int c = 0; c < 256; c++) {
		char text[] = { '0', '0', '0', (char)c };
		bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
		assert_int_equal(hex_decode(text, 4, back, 2), digit ? 0 : -1);
		text[3] = '0';
		text[0] = (char)c;
		assert_int_equal(hex_decode(text, 4, back, 2), digit ? 0 : -1);
	}
	back[0] = 1;
	back[1] = 2;
	assert_int_equal(hex_decode("000", 3, back, 2), -1);
	assert_int_equal(hex_decode("00000", 5, back, 2), -1);
	assert_int_equal(hex_decode("000000", 6, back, 2), -1);
	assert_int_equal(hex_decode("00", 2, back, 2), -1);
	assert_int_equal(hex_decode("000g", 4, back, 2), -1);
	assert_int_equal(back[0], 1); /* a failure must not change it */
	assert_int_equal(back[1], 2);
}

/* hex_digit() is for texts that are not secret; it accepts upper and lower case. */
static void hex_digits(void **state)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	for (int c = -128; c < 128; c++) {
		const char *at = c == 0 ? NULL : strchr(digits, c);
		assert_int_equal(hex_digit((char)c), at == NULL ? -1 : (at - digits) % 16);
	}
}

static void base64_there_and_back(void **state)
{
	uint8_t bytes[256];

	for (unsigned i = 0; i < 256; i++) {
		bytes[i] = (uint8_t)(i * 7);
	}
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		auto_free char *text = base64_encode(bytes, len);
		auto_buf back = BUF(sizeof(bytes));

		assert_non_null(text);
		assert_int_equal(base64_decode(text, strlen(text), &back), 0);
		assert_int_equal(back.len, len);
		assert_memory_equal(len > 0 ? back.data : "", bytes, len);
	}
}

static void base64_is_strict(void **state)
{
	static const char *const bad[] = { "A",        "AA",   "AAA",  "A===", "====",
		                           "AA=A",     "AB==", "AAB=", "AA-_", "AA==AAAA",
		                           "AAA=AAAA", "AA A", "AAA ", "AAAAA" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf back = BUF(64);

		assert_int_equal(base64_decode(bad[i], strlen(bad[i]), &back), -1);
	}
	auto_buf none; /* a buffer with too little room */
	buf_init(&none, 2);
	assert_int_equal(base64_decode("AAAA", 4, &none), -1);
	assert_int_equal(base64_decode("AA\0A", 4, &none), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_standards),
		cmocka_unit_test(any_split_is_the_same),
		cmocka_unit_test(nothing_may_be_null),
		cmocka_unit_test(accelerated_is_portable),
		cmocka_unit_test(openssl_agrees),
		cmocka_unit_test(hex_there_and_back),
		cmocka_unit_test(hex_is_strict),
		cmocka_unit_test(hex_digits),
		cmocka_unit_test(base64_there_and_back),
		cmocka_unit_test(base64_is_strict),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
