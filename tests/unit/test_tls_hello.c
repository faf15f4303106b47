/* test_tls_hello.c - ClientHello messages: real ones, and constructed ones with one defect each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/own.h"
#include "os/file.h"
#include "wire/tls_hello.h"

#define RAW(x)  (x), sizeof(x) - 1
#define ROWS(t) (sizeof(t) / sizeof((t)[0]))
#define L63     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B32     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define L61     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define SIZE   (2 * TLS_HELLO_MAX)
#define OTHERS "\0\027\0\0\0\053\0\003\002\003\004" /* two extensions that the parser ignores */
#define SNI    "\0\0\0\016\0\014\0\0\011a.example"
#define ECH    "\376\015\0\003abc"
#define GREASE "\052\052\0\0\332\332\0\001x"

/* Parses a copy that has exactly `len` bytes, so that a sanitizer reports a read past its end. */
static enum tls_verdict parse(const uint8_t *data, size_t len, char name[TLS_MAX_NAME])
{
	auto_free uint8_t *exact = malloc(len + (len == 0));

	assert_non_null(exact);
	memcpy(exact, data, len);
	memset(name, 'X', TLS_MAX_NAME - 1);
	name[TLS_MAX_NAME - 1] = '\0';
	enum tls_verdict v = tls_hello_parse(exact, len, name);
	if (v != TLS_NAME && v != TLS_ECH) {
		assert_int_equal(strspn(name, "X"), TLS_MAX_NAME - 1); /* name is unchanged */
	}
	return v;
}

static size_t add(uint8_t *out, size_t at, const void *bytes, size_t n)
{
	memcpy(out + at, bytes, n);
	return at + n;
}

/* session id, cipher suites, compression */
#define MIDDLE "\004sess\0\004\023\001\023\002\001\0"

/* Builds a ClientHello message without records. `middle` has the vectors before the extensions
 * (session id, cipher suites, compression). Returns the length. */
static size_t build_with(const void *middle, size_t middle_len, const void *ext, size_t ext_len,
                         uint8_t *out)
{
	static const uint8_t fixed[4 + 2 + 32] = { 1, 0, 0, 0, 3, 3 };
	size_t n = add(out, 0, fixed, sizeof(fixed));

	n = add(out, n, middle, middle_len);
	out[n++] = (uint8_t)(ext_len >> 8);
	out[n++] = (uint8_t)ext_len;
	n = add(out, n, ext, ext_len);
	out[1] = (uint8_t)((n - 4) >> 16);
	out[2] = (uint8_t)((n - 4) >> 8);
	out[3] = (uint8_t)(n - 4);
	return n;
}

static size_t build(const void *ext, size_t ext_len, uint8_t *out)
{
	static const char middle[] = MIDDLE;

	return build_with(middle, sizeof(middle) - 1, ext, ext_len, out);
}

/* Puts a message into records of at most `part` bytes. */
static size_t wrap(const uint8_t *msg, size_t len, size_t part, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i += part) {
		size_t k = len - i < part ? len - i : part;
		const uint8_t head[] = { 22, 3, 1, (uint8_t)(k >> 8), (uint8_t)k };
		n = add(out, n, head, sizeof(head));
		n = add(out, n, msg + i, k);
	}
	return n;
}

static enum tls_verdict parse_ext(const void *ext, size_t len, char name[TLS_MAX_NAME])
{
	uint8_t msg[4096], data[4096 + 5];
	size_t n = build(ext, len, msg);

	return parse(data, wrap(msg, n, 16384, data), name);
}

/* Recorded from real clients. */
static const struct {
	const char *file;
	enum tls_verdict verdict;
	const char *name;
} REAL[] = {
	{ "real_openssl", TLS_NAME, "api.example.com" },
	{ "real_openssl_tls12", TLS_NAME, "api.example.com" },
	{ "real_openssl_upper_dot", TLS_NAME, "api.example.com" },
	{ "real_openssl_noname", TLS_NO_NAME, NULL },
	{ "real_openssl_address", TLS_BAD_NAME, NULL },
	{ "real_openssl_ticket_tls1_3", TLS_NAME, "api.example.com" },
	{ "real_openssl_ticket_tls1_2", TLS_NAME, "api.example.com" },
	{ "real_curl", TLS_NAME, "api.example.com" },
	{ "real_node", TLS_NAME, "api.example.com" },
	{ "real_python", TLS_NAME, "api.example.com" },
};

static size_t load(const char *file, uint8_t *out, size_t room)
{
	char path[4096];
	const char *source = getenv("SSB_SOURCE");
	auto_buf bytes;

	assert_non_null(source);
	(void)snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/tls_hello/%s", source, file);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(&bytes, room);
	if (fd < 0 || file_read_all(fd, &bytes) < 0) {
		fail_msg("cannot read %s", path);
	}
	memcpy(out, bytes.data, bytes.len);
	return bytes.len;
}

/* Parses each recorded hello as a whole, each prefix of it, in records of each size, and in two
 * records for each place of the cut. */
static void test_real(void **state)
{
	uint8_t data[4096], out[8 * 4096];
	char name[TLS_MAX_NAME];

	for (size_t i = 0; i < ROWS(REAL); i++) {
		size_t len = load(REAL[i].file, data, sizeof(data));
		const uint8_t *msg = data + 5;
		for (size_t n = 0; n < len; n++) {
			assert_int_equal(parse(data, n, name), TLS_MORE);
		}
		assert_int_equal(parse(data, len, name), REAL[i].verdict);
		assert_true(REAL[i].name == NULL || strcmp(name, REAL[i].name) == 0);
		for (size_t part = 1; part < len - 5; part++) {
			size_t n = wrap(msg, len - 5, part, out);
			assert_int_equal(parse(out, n, name), REAL[i].verdict);
			assert_true(REAL[i].name == NULL || strcmp(name, REAL[i].name) == 0);
			assert_int_equal(parse(out, n - 1, name), TLS_MORE);
			n = wrap(msg, part, part, out);
			n += wrap(msg + part, len - 5 - part, len, out + n);
			assert_int_equal(parse(out, n, name), REAL[i].verdict);
			assert_true(REAL[i].name == NULL || strcmp(name, REAL[i].name) == 0);
		}
	}
}

static const struct {
	const char *ext;
	size_t len;
	enum tls_verdict verdict;
	const char *name;
} EXTENSIONS[] = {
	{ RAW(SNI), TLS_NAME, "a.example" },
	{ RAW(OTHERS SNI), TLS_NAME, "a.example" },
	{ RAW(GREASE SNI GREASE), TLS_NAME, "a.example" },
	{ RAW(""), TLS_NO_NAME, NULL },
	{ RAW(OTHERS), TLS_NO_NAME, NULL },
	{ RAW(GREASE), TLS_NO_NAME, NULL },
	/* hellos with an encrypted part: ECH, its drafts, and ESNI; then extensions with the
	 * numbers beside these, which are not */
	{ RAW(SNI ECH), TLS_ECH, "a.example" },
	{ RAW(ECH SNI), TLS_ECH, "a.example" },
	{ RAW(ECH), TLS_ECH, "" },
	{ RAW("\376\015\0\0"), TLS_ECH, "" },
	{ RAW("\377\316\0\0"), TLS_ECH, "" },
	{ RAW(SNI "\377\316\0\002ab"), TLS_ECH, "a.example" },
	{ RAW("\376\010\0\0"), TLS_ECH, "" },
	{ RAW("\377\002\0\0"), TLS_ECH, "" },
	{ RAW("\376\007\0\0"), TLS_NO_NAME, NULL },
	{ RAW("\376\016\0\0"), TLS_NO_NAME, NULL },
	{ RAW("\377\001\0\001\0"), TLS_NO_NAME, NULL },
	{ RAW("\377\315\0\0"), TLS_NO_NAME, NULL },
	{ RAW("\377\317\0\0"), TLS_NO_NAME, NULL },
	/* more than one name, in two extensions or in two entries of one, with and without ECH */
	{ RAW(SNI SNI), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\012\0\010\0\0\001a\0\0\001b"), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\012\0\010\0\0\001a\001\0\001b"), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\007\0\005\0\0\001aX"), TLS_BAD_NAME, NULL },
	{ RAW(SNI SNI ECH), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\002\0\0" SNI), TLS_BAD_NAME, NULL },
	/* an empty list, an empty name, a name of another type */
	{ RAW("\0\0\0\002\0\0"), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\005\0\003\0\0\0"), TLS_BAD_NAME, NULL },
	{ RAW("\0\0\0\006\0\004\001\0\001a"), TLS_BAD_NAME, NULL },
	/* contradictory lengths */
	{ RAW("\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\001\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\001"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\003\0\001\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\004\0\002\0\0"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\016\0\013\0\0\011a.example"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\016\0\015\0\0\011a.example"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\016\0\014\0\0\012a.example"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\017\0\014\0\0\011a.example"), TLS_BROKEN, NULL },
	{ RAW("\0\0\0\012\0\004\0\0\001a\0\027\0\0"), TLS_BROKEN, NULL },
	{ RAW(SNI "\0\053\0\004abc"), TLS_BROKEN, NULL },
	{ RAW(SNI "\0\053\377\377abc"), TLS_BROKEN, NULL },
	{ RAW(ECH "\0"), TLS_BROKEN, NULL },
};

static void test_extensions(void **state)
{
	char name[TLS_MAX_NAME];

	for (size_t i = 0; i < ROWS(EXTENSIONS); i++) {
		enum tls_verdict v = parse_ext(EXTENSIONS[i].ext, EXTENSIONS[i].len, name);
		if (v != EXTENSIONS[i].verdict) {
			fail_msg("row %zu: %d, not %d", i, v, EXTENSIONS[i].verdict);
		}
		assert_true(EXTENSIONS[i].name == NULL || strcmp(name, EXTENSIONS[i].name) == 0);
	}
}

/* NULL: not a valid host name */
static const struct {
	const char *in;
	size_t len;
	const char *out;
} NAMES[] = {
	{ RAW("api.example.com"), "api.example.com" },
	{ RAW("API.Example.COM"), "api.example.com" },
	{ RAW("api.example.com."), "api.example.com" },
	{ RAW("localhost"), "localhost" },
	{ RAW("_a-b.example"), "_a-b.example" },
	{ RAW("xn--bcher-kva.example"), "xn--bcher-kva.example" },
	{ RAW("1.2.3.4.example"), "1.2.3.4.example" },
	{ RAW("0x7f.example"), "0x7f.example" },
	{ RAW("3com.4x"), "3com.4x" },
	{ RAW(L63 ".a"), L63 ".a" },
	{ RAW(L63 "." L63 "." L63 "." L61), L63 "." L63 "." L63 "." L61 }, /* 253 */
	{ RAW(L63 "." L63 "." L63 "." L61 "."), L63 "." L63 "." L63 "." L61 },
	{ RAW(L63 "." L63 "." L63 ".a" L61), NULL },
	{ RAW(L63 "." L63 "." L63 ".a" L61 "."), NULL },
	{ RAW(L63 "." L63 "." L63 "." L63 "." L63), NULL },
	{ RAW("a" L63 ".a"), NULL },
	{ RAW("."), NULL },
	{ RAW(".."), NULL },
	{ RAW(".a"), NULL },
	{ RAW("a.."), NULL },
	{ RAW("a..b"), NULL },
	{ RAW("192.0.2.1"), NULL },
	{ RAW("192.0.2.1."), NULL },
	{ RAW("127.1"), NULL },
	{ RAW("2130706433"), NULL },
	{ RAW("0x7f.1"), NULL },
	{ RAW("0X7F000001"), NULL },
	{ RAW("::1"), NULL },
	{ RAW("[::1]"), NULL },
	{ RAW("a\0b"), NULL },
	{ RAW("api.example.com\0"), NULL },
	{ RAW("api.example.com\0.evil.test"), NULL },
	{ RAW("\0"), NULL },
	{ RAW("a b"), NULL },
	{ RAW("*.example.com"), NULL },
	{ RAW("b\303\274cher.example"), NULL },
	{ RAW("a.example:443"), NULL },
	{ RAW("a/b"), NULL },
	{ RAW("a\n"), NULL },
};

static void test_names(void **state)
{
	char name[TLS_MAX_NAME];
	uint8_t ext[512];

	for (size_t i = 0; i < ROWS(NAMES); i++) {
		size_t len = NAMES[i].len;
		const size_t lengths[] = { 0, len + 5, len + 3 };
		size_t n = 0;
		for (size_t k = 0; k < 3; k++) {
			ext[n++] = (uint8_t)(lengths[k] >> 8);
			ext[n++] = (uint8_t)lengths[k];
		}
		ext[n++] = 0;
		ext[n++] = (uint8_t)(len >> 8);
		ext[n++] = (uint8_t)len;
		n = add(ext, n, NAMES[i].in, len);
		enum tls_verdict v = parse_ext(ext, n, name);
		if (v != (NAMES[i].out != NULL ? TLS_NAME : TLS_BAD_NAME)) {
			fail_msg("name '%s': %d", NAMES[i].in, v);
		}
		assert_true(NAMES[i].out == NULL || strcmp(name, NAMES[i].out) == 0);
	}
}

/* The last of these bytes must be enough for the verdict. With one byte less, the verdict is
 * TLS_MORE. */
static const struct {
	const char *bytes;
	size_t len;
	enum tls_verdict verdict;
} STARTS[] = {
	{ RAW("\026\003\001\001\0\001"), TLS_MORE },
	{ RAW("\026\003\0\001\0\001"), TLS_MORE },
	{ RAW("\026\003\004\001\0\001"), TLS_MORE },
	{ RAW("G"), TLS_NOT_TLS },    /* GET */
	{ RAW("\200"), TLS_NOT_TLS }, /* SSLv2 */
	{ RAW("\0"), TLS_NOT_TLS },   /* SSLv2, long header */
	{ RAW("\025"), TLS_NOT_TLS }, /* alert */
	{ RAW("\024"), TLS_NOT_TLS }, /* change cipher spec */
	{ RAW("\027"), TLS_NOT_TLS }, /* application data */
	{ RAW("\026\002"), TLS_NOT_TLS },
	{ RAW("\026\376"), TLS_NOT_TLS },               /* DTLS */
	{ RAW("\026\003\001\001\0\002"), TLS_NOT_TLS }, /* ServerHello */
	{ RAW("\026\003\001\001\0\0"), TLS_NOT_TLS },   /* HelloRequest */
	{ RAW("\026\003\005"), TLS_BROKEN },
	{ RAW("\026\003\001\0\0"), TLS_BROKEN },     /* an empty record */
	{ RAW("\026\003\001\100\001"), TLS_BROKEN }, /* a record of 16385 bytes */
	{ RAW("\026\003\001\001\0\001\002\0\0"), TLS_BROKEN },
	{ RAW("\026\003\001\001\0\001\377\377\377"), TLS_BROKEN },
	/* the record is longer than the message in it */
	{ RAW("\026\003\001\0\012\001\0\0\005"), TLS_BROKEN },
	/* after the first fragment: an alert, another version, an empty record */
	{ RAW("\026\003\001\0\002\001\0\025"), TLS_BROKEN },
	{ RAW("\026\003\001\0\002\001\0\026\002"), TLS_BROKEN },
	{ RAW("\026\003\001\0\002\001\0\026\003\003\0\0"), TLS_BROKEN },
	{ RAW("\026\003\001\0\001\001\026\003\003\0\001\0\027"), TLS_BROKEN },
	/* a message that is too short for its fixed fields */
	{ RAW("\026\003\001\0\004\001\0\0\0"), TLS_BROKEN },
	{ RAW("\026\003\001\0\006\001\0\0\002\003\003"), TLS_BROKEN },
};

static void test_starts(void **state)
{
	char name[TLS_MAX_NAME];

	assert_int_equal(parse((const uint8_t *)"", 0, name), TLS_MORE);
	for (size_t i = 0; i < ROWS(STARTS); i++) {
		const uint8_t *bytes = (const uint8_t *)STARTS[i].bytes;
		enum tls_verdict v = parse(bytes, STARTS[i].len, name);
		if (v != STARTS[i].verdict) {
			fail_msg("start %zu: %d, not %d", i, v, STARTS[i].verdict);
		}
		assert_int_equal(parse(bytes, STARTS[i].len - 1, name), TLS_MORE);
	}
}

/* One byte of a valid hello is changed: its offset, the new value, and the verdict. */
static const struct {
	size_t at;
	uint8_t byte;
	enum tls_verdict verdict;
} CHANGES[] = {
	{ 4, 3, TLS_NAME },                              /* unchanged */
	{ 4, 2, TLS_BROKEN },                            /* the version of SSL 2 */
	{ 5, 1, TLS_NAME },                              /* TLS 1.0 */
	{ 44, 255, TLS_BROKEN }, { 49, 0, TLS_BROKEN },  /* no compression method */
	{ 49, 255, TLS_BROKEN }, { 52, 17, TLS_BROKEN }, /* extensions shorter than the rest */
	{ 52, 19, TLS_BROKEN },                          /* extensions longer than the rest */
	{ 51, 1, TLS_BROKEN },
};

static void test_fields(void **state)
{
	uint8_t msg[256], data[256];
	char name[TLS_MAX_NAME];

	for (size_t i = 0; i < ROWS(CHANGES); i++) {
		size_t n = build(RAW(SNI), msg);
		assert_int_equal(msg[52], sizeof(SNI) - 1); /* CHANGES relies on this offset */
		msg[CHANGES[i].at] = CHANGES[i].byte;
		enum tls_verdict v = parse(data, wrap(msg, n, 100, data), name);
		if (v != CHANGES[i].verdict) {
			fail_msg("change %zu: %d, not %d", i, v, CHANGES[i].verdict);
		}
	}
	/* a hello of an old client, without extensions */
	(void)build("", 0, msg);
	msg[3] = 51 - 4;
	assert_int_equal(parse(data, wrap(msg, 51, 100, data), name), TLS_NO_NAME);
}

/* The vectors before the extensions (session id, cipher suites, compression): each at its limits,
 * and past them. */
static const struct {
	const char *middle;
	size_t len;
	enum tls_verdict verdict;
} MIDDLES[] = {
	{ RAW(MIDDLE), TLS_NAME },
	{ RAW("\0\0\002\023\001\001\0"), TLS_NAME },
	{ RAW("\040" B32 "\0\002\023\001\001\0"), TLS_NAME },
	{ RAW("\041" B32 "x\0\002\023\001\001\0"), TLS_BROKEN },
	{ RAW("\0\0\0\001\0"), TLS_BROKEN },               /* no cipher suites */
	{ RAW("\0\0\003\023\001\023\001\0"), TLS_BROKEN }, /* one and a half cipher suites */
	{ RAW("\0\0\002\023\001\0"), TLS_BROKEN },         /* no compression method */
};

static void test_vectors(void **state)
{
	uint8_t msg[256], data[256];
	char name[TLS_MAX_NAME];

	for (size_t i = 0; i < ROWS(MIDDLES); i++) {
		size_t n = build_with(MIDDLES[i].middle, MIDDLES[i].len, RAW(SNI), msg);
		enum tls_verdict v = parse(data, wrap(msg, n, 200, data), name);
		if (v != MIDDLES[i].verdict) {
			fail_msg("vectors %zu: %d, not %d", i, v, MIDDLES[i].verdict);
		}
	}
}

/* Bytes after the last record of the hello are ignored. */
static void test_more_after(void **state)
{
	uint8_t msg[256], data[512];
	char name[TLS_MAX_NAME];
	size_t n = build(RAW(SNI), msg);

	size_t len = wrap(msg, n, 100, data);
	assert_int_equal(parse(data, add(data, len, RAW("\024\003\003\0\001\001")), name),
	                 TLS_NAME);
	assert_int_equal(parse(data, add(data, len, RAW("garbage")), name), TLS_NAME);
	/* But in the record of the hello itself, nothing may follow, not even another hello. */
	n += build(RAW(""), msg + n);
	assert_int_equal(parse(data, wrap(msg, n, 256, data), name), TLS_BROKEN);
}

/* Extensions of 65535 bytes, the maximum, are accepted. A hello that is longer than TLS_HELLO_MAX
 * is refused. */
static void test_long(void **state)
{
	auto_free uint8_t *msg = malloc(SIZE), *data = malloc(SIZE);
	auto_free uint8_t *ext = calloc(1, 65536);
	char name[TLS_MAX_NAME];

	assert_true(msg != NULL && data != NULL && ext != NULL);
	/* a large extension comes before the name, so that all extensions together have 65535
	 * bytes, the maximum */
	size_t pad = 65535 - (sizeof(SNI) - 1) - 4;
	ext[1] = 0x15;
	ext[2] = (uint8_t)(pad >> 8);
	ext[3] = (uint8_t)pad;
	memcpy(ext + 4 + pad, SNI, sizeof(SNI) - 1);
	size_t n = build(ext, 65535, msg);
	for (size_t part = 16384; part > 400; part = part * 3 / 4) {
		size_t len = wrap(msg, n, part, data);
		if (len > TLS_HELLO_MAX) {
			continue;
		}
		assert_int_equal(parse(data, len, name), TLS_NAME);
		assert_string_equal(name, "a.example");
		assert_int_equal(parse(data, len - 1, name), TLS_MORE);
	}
	/* small fragments make the same hello longer than TLS_HELLO_MAX */
	size_t len = wrap(msg, n, 300, data);
	assert_true(len > TLS_HELLO_MAX);
	assert_int_equal(parse(data, TLS_HELLO_MAX - 300, name), TLS_MORE);
	assert_int_equal(parse(data, TLS_HELLO_MAX, name), TLS_BROKEN);
	assert_int_equal(parse(data, len, name), TLS_BROKEN);
}

/* If at most 5 bytes of TLS_HELLO_MAX are left after a record, no further record fits, so the
 * verdict must not be TLS_MORE. */
static void test_edge(void **state)
{
	auto_free uint8_t *msg = calloc(1, SIZE), *data = calloc(1, SIZE);
	char name[TLS_MAX_NAME];

	assert_true(msg != NULL && data != NULL);
	memcpy(msg, "\001\001\003\377", 4); /* longer than TLS_HELLO_MAX */
	for (size_t left = 0; left <= 6; left++) {
		size_t len = wrap(msg, 64000, 16000, data);
		len += wrap(msg + 64000, TLS_HELLO_MAX - left - len - 5, 16000, data + len);
		assert_int_equal(len, TLS_HELLO_MAX - left);
		assert_int_equal(parse(data, len, name), left <= 5 ? TLS_BROKEN : TLS_MORE);
		assert_int_equal(parse(data, len - 1, name), TLS_MORE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real),   cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_names),  cmocka_unit_test(test_starts),
		cmocka_unit_test(test_fields), cmocka_unit_test(test_more_after),
		cmocka_unit_test(test_long),   cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_edge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
