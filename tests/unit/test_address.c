/* test_address.c - address ranges as text: equal ranges are always written as the same text.
 * test_guard.c tests which texts are addresses. */
#include "unit.h"
#include "base/address.h"
#include "base/own.h"

static void test_range_texts(void **state)
{
	static const char *const TEXTS[][2] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "1.2.3.4", "1.2.3.4/32" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "255.255.255.255/32", "255.255.255.255/32" },
		{ "::ffff:10.0.0.0/104", "10.0.0.0/8" }, /* the IPv6 form of the same range */
		{ "::ffff:0:0/96", "0.0.0.0/0" },
		{ "FD00:0:0::/8", "fd00::/8" },
		{ "::1", "::1/128" },
		{ "::/0", "::/0" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128" },
	};
	char out[CIDR_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		struct cidr c, again;
		assert_true(cidr_parse(TEXTS[i][0], &c));
		cidr_format(&c, out);
		assert_string_equal(out, TEXTS[i][1]);
		assert_true(cidr_parse(out, &again)); /* it must give the same range */
		assert_memory_equal(&c, &again, sizeof(c));
	}
}

static void test_families(void **state)
{
	static const struct {
		const char *text;
		bool v4;
	} ROWS[] = {
		{ "127.0.0.1", true },
		{ "::ffff:127.0.0.1", true },
		{ "::1", false },
		{ "::127.0.0.1", false },
		{ "::fffe:1.2.3.4", false },
		{ "64:ff9b::1.2.3.4", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct address a;
		assert_true(address_parse(ROWS[i].text, &a));
		assert_int_equal(address_is_v4(&a), ROWS[i].v4);
	}
}

static void test_sockets(void **state)
{
	static const struct {
		const char *text;
		sa_family_t family;
		socklen_t len;
	} ROWS[] = {
		{ "1.2.3.4", AF_INET, sizeof(struct sockaddr_in) },
		{ "::ffff:1.2.3.4", AF_INET, sizeof(struct sockaddr_in) },
		{ "fd00::1", AF_INET6, sizeof(struct sockaddr_in6) },
	};
	const uint8_t bytes[4] = { 1, 2, 3, 4 };
	struct address a, back = address_of_v4(bytes);
	union address_socket at;
	uint16_t port = 0;

	assert_true(address_parse("1.2.3.4", &a));
	assert_memory_equal(&a, &back, sizeof(a));
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_true(address_parse(ROWS[i].text, &a));
		assert_int_equal(address_to_socket(&a, 65280, &at), ROWS[i].len);
		assert_int_equal(at.any.sa_family, ROWS[i].family);
		assert_int_equal(ROWS[i].family == AF_INET ? at.in.sin_port : at.in6.sin6_port,
		                 htons(65280));
		assert_true(address_from_socket(&at, &back, &port));
		assert_memory_equal(&a, &back, sizeof(a));
		assert_int_equal(port, 65280);
	}
	at.any.sa_family = AF_UNIX;
	port = 7;
	assert_false(address_from_socket(&at, &back, &port));
	assert_memory_equal(&a, &back, sizeof(a)); /* the failure must not change it */
	assert_int_equal(port, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range_texts),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
