/* test_guard.c - addresses: which text is an address, which ranges are special, and which addresses
 * a grant allows. */
#include <string.h>

#include "unit.h"
#include "egress/guard.h"

#define ROWS(t) (sizeof(t) / sizeof((t)[0]))

static struct address addr(const char *text)
{
	struct address a;

	if (!address_parse(text, &a)) {
		fail_msg("%s is not an address", text);
	}
	return a;
}

static const char *special(const char *text)
{
	struct address a = addr(text);
	const char *kind = guard_address_special(&a);

	return kind != NULL ? kind : "public";
}

/* Returns the address after `a` (by = 1), or before it (by = -1). */
static struct address step(struct address a, int by)
{
	for (int i = 15; i >= 0; i--) {
		uint8_t before = a.b[i];
		a.b[i] = (uint8_t)(before + by);
		if (by > 0 ? a.b[i] != 0 : before != 0) {
			break;
		}
	}
	return a;
}

/* Each row is a range, its kind, and the kinds of the addresses just below and just above it. NULL
 * means public. */
static const struct {
	const char *first, *last, *kind, *below, *above;
} RANGES[] = {
	{ "0.0.0.0", "0.255.255.255", "unspecified", NULL, NULL },
	{ "1.0.0.0", "9.255.255.255", NULL, "unspecified", "private" },
	{ "10.0.0.0", "10.255.255.255", "private", NULL, NULL },
	{ "100.64.0.0", "100.100.100.199", "cgnat", NULL, "metadata" },
	{ "100.100.100.200", "100.100.100.200", "metadata", "cgnat", "cgnat" },
	{ "100.100.100.201", "100.127.255.255", "cgnat", "metadata", NULL },
	{ "127.0.0.0", "127.255.255.255", "loopback", NULL, NULL },
	{ "168.63.129.16", "168.63.129.16", "metadata", NULL, NULL },
	{ "169.254.0.0", "169.254.0.22", "link_local", NULL, "metadata" },
	{ "169.254.0.23", "169.254.0.23", "metadata", "link_local", "link_local" },
	{ "169.254.42.42", "169.254.42.42", "metadata", "link_local", "link_local" },
	{ "169.254.169.254", "169.254.169.254", "metadata", "link_local", "link_local" },
	{ "169.254.170.2", "169.254.170.2", "metadata", "link_local", "link_local" },
	{ "169.254.170.23", "169.254.170.23", "metadata", "link_local", "link_local" },
	{ "169.254.170.24", "169.254.255.255", "link_local", "metadata", NULL },
	{ "172.16.0.0", "172.31.255.255", "private", NULL, NULL },
	{ "192.0.0.0", "192.0.0.191", "reserved", NULL, "metadata" },
	{ "192.0.0.192", "192.0.0.192", "metadata", "reserved", "reserved" },
	{ "192.0.0.193", "192.0.0.255", "reserved", "metadata", NULL },
	{ "192.0.2.0", "192.0.2.255", "documentation", NULL, NULL },
	{ "192.88.99.0", "192.88.99.255", "reserved", NULL, NULL },
	{ "192.168.0.0", "192.168.255.255", "private", NULL, NULL },
	{ "198.18.0.0", "198.19.255.255", "benchmark", NULL, NULL },
	{ "198.51.100.0", "198.51.100.255", "documentation", NULL, NULL },
	{ "203.0.113.0", "203.0.113.255", "documentation", NULL, NULL },
	{ "224.0.0.0", "239.255.255.255", "multicast", NULL, "reserved" },
	{ "240.0.0.0", "255.255.255.254", "reserved", "multicast", "broadcast" },
	{ "255.255.255.255", "255.255.255.255", "broadcast", "reserved", "reserved" },

	{ "::", "::", "unspecified", "multicast", "loopback" },
	{ "::1", "::1", "loopback", "unspecified", "unspecified" },
	{ "::100:0", "::100:0", "reserved", "unspecified", "reserved" },
	{ "64:ff9b::100:0", "64:ff9b::9ff:ffff", NULL, "unspecified", "private" },
	{ "64:ff9b::e000:0", "64:ff9b::efff:ffff", "multicast", NULL, "reserved" },
	{ "64:ff9b:0:0:0:1::", "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "reserved", "broadcast",
	  "unspecified" },
	{ "100::", "100::ffff:ffff:ffff:ffff", "reserved", "reserved", "reserved" },
	{ "2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "reserved", "unspecified" },
	{ "2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "broadcast",
	  "benchmark" },
	{ "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmark", "reserved", "reserved" },
	{ "2001:10::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "reserved", NULL },
	{ "2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "reserved",
	  "documentation" },
	{ "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", NULL, NULL },
	{ "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", NULL, NULL },
	{ "4000::", "5f00::", "reserved", NULL, "reserved" },
	{ "fc00::", "fcff::", "unique_local", "reserved", "unique_local" },
	{ "fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", "metadata", "unique_local",
	  "unique_local" },
	{ "fd20:ce::", "fd20:ce:ffff:ffff:ffff:ffff:ffff:ffff", "metadata", "unique_local",
	  "unique_local" },
	{ "fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "unique_local",
	  "link_local" },
	{ "fe80::a9fe:a9fe", "fe80::a9fe:a9fe", "metadata", "link_local", "link_local" },
	{ "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link_local", "reserved",
	  "private" },
	{ "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private", "link_local",
	  "multicast" },
	{ "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast", "private",
	  "unspecified" },
};

static void check_kind(const struct address *a, const char *want)
{
	char text[48];
	const char *kind = guard_address_special(a);

	address_format(a, text);
	if ((kind == NULL) != (want == NULL) || (kind != NULL && strcmp(kind, want) != 0)) {
		fail_msg("%s is %s, not %s", text, kind != NULL ? kind : "public",
		         want != NULL ? want : "public");
	}
}

static void test_ranges(void **state)
{
	for (size_t i = 0; i < ROWS(RANGES); i++) {
		struct address first = addr(RANGES[i].first), last = addr(RANGES[i].last);
		struct address below = step(first, -1), above = step(last, 1);
		check_kind(&first, RANGES[i].kind);
		check_kind(&last, RANGES[i].kind);
		/* 0.0.0.0 and :: are the lowest addresses: there is none below */
		if (i > 0 && strcmp(RANGES[i].first, "::") != 0) {
			check_kind(&below, RANGES[i].below);
		}
		if (strcmp(RANGES[i].last, "255.255.255.255") != 0) {
			check_kind(&above, RANGES[i].above);
		}
	}
}

static const struct {
	const char *text, *kind;
} FORMS[] = {
	{ "8.8.8.8", "public" },
	{ "2606:4700::1111", "public" },
	{ "::ffff:8.8.8.8", "public" },
	{ "::ffff:127.0.0.1", "loopback" },
	{ "::ffff:a9fe:a9fe", "metadata" },
	{ "::ffff:10.1.2.3", "private" },
	/* IPv4-compatible and IPv4-translated addresses */
	{ "::127.0.0.1", "loopback" },
	{ "::169.254.169.254", "metadata" },
	{ "::8.8.8.8", "reserved" },
	{ "::ffff:0:127.0.0.1", "loopback" },
	{ "::ffff:0:8.8.8.8", "reserved" },
	/* NAT64 */
	{ "64:ff9b::8.8.8.8", "public" },
	{ "64:ff9b::127.0.0.1", "loopback" },
	{ "64:ff9b::192.168.1.1", "private" },
	{ "64:ff9b::169.254.169.254", "metadata" },
	{ "64:ff9b:1::127.0.0.1", "loopback" },
	{ "64:ff9b:1:abcd::10.0.0.1", "private" },
	{ "64:ff9b:1::8.8.8.8", "reserved" },
	{ "64:ff9b:2::8.8.8.8", "reserved" },
	/* 6to4 */
	{ "2002:808:808::1", "public" },
	{ "2002:7f00:1::1", "loopback" },
	{ "2002:a9fe:a9fe::", "metadata" },
	{ "2002:c0a8:101:1::1", "private" },
	{ "2003:7f00:1::1", "public" },
	/* Teredo: the address of the server, and the inverted address of the client */
	{ "2001:0:808:808:0:0:f7f7:f7f7", "public" },
	{ "2001:0:7f00:1:0:0:f7f7:f7f7", "loopback" },
	{ "2001:0:808:808:0:0:80ff:fffe", "loopback" },
	{ "2001:0:808:808:0:0:5601:5601", "metadata" },
	{ "2001:0:808:808:0:0:7f00:1", "public" }, /* 128.255.255.254 */
	/* ISATAP, beneath any prefix */
	{ "2606:4700::5efe:8.8.8.8", "public" },
	{ "2606:4700::5efe:127.0.0.1", "loopback" },
	{ "2606:4700::200:5efe:10.0.0.1", "private" },
	{ "2606:4700::100:5efe:10.0.0.1", "public" },
	{ "2002:808:808::5efe:10.0.0.1", "private" },
	{ "fe80::5efe:8.8.8.8", "link_local" },
};

static void test_forms(void **state)
{
	for (size_t i = 0; i < ROWS(FORMS); i++) {
		assert_string_equal(special(FORMS[i].text), FORMS[i].kind);
	}
}

static const char *const NO_ADDRESS[] = {
	"",
	"127.1",
	"127.0.1",
	"2130706433",
	"0x7f.1",
	"0x7f000001",
	"0x7f.0.0.1",
	"127.0.0.01",
	"0177.0.0.1",
	"00.0.0.0",
	"127.0.0.1.",
	"127.0.0.1 ",
	" 127.0.0.1",
	"127.0.0.1\n",
	"127.0.0.256",
	"127.0.0.1000",
	"127.0.0.4294967297",
	"127.0.0.-1",
	"127.0.0.+1",
	"127.0.0",
	"127.0.0.",
	"127..0.1",
	".127.0.0.1",
	"127.0.0.0.1",
	"127.0.0.1:80",
	"127.0.0.1/32",
	"[::1]",
	"::1%lo",
	"fe80::1%eth0",
	":",
	":::",
	"1::2::3",
	"1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:8:9",
	"12345::",
	"::g",
	"::ffff:127.1",
	"::ffff:127.0.0.01",
	"::ffff:0x7f.0.0.1",
	"localhost",
	"\xef\xbc\x91.0.0.1", /* a full-width digit */
};

static void test_no_address(void **state)
{
	for (size_t i = 0; i < ROWS(NO_ADDRESS); i++) {
		struct address a, before;
		memset(&a, 0x5a, sizeof(a));
		before = a;
		if (address_parse(NO_ADDRESS[i], &a)) {
			fail_msg("'%s' was taken for an address", NO_ADDRESS[i]);
		}
		assert_memory_equal(&a, &before, sizeof(a));
	}
}

static void test_format(void **state)
{
	static const char *const texts[][2] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "::", "::" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	char out[48];

	for (size_t i = 0; i < ROWS(texts); i++) {
		struct address a = addr(texts[i][0]);
		address_format(&a, out);
		assert_string_equal(out, texts[i][1]);
	}
}

static const struct {
	const char *range, *inside, *outside;
} CIDRS[] = {
	{ "10.0.0.0/8", "10.255.255.255", "11.0.0.0" },
	{ "10.0.0.0/8", "::ffff:10.0.0.0", "9.255.255.255" },
	{ "10.1.128.0/17", "10.1.255.255", "10.1.127.255" },
	{ "1.2.3.4", "1.2.3.4", "1.2.3.5" },
	{ "1.2.3.4/32", "1.2.3.4", "1.2.3.5" },
	{ "1.2.3.4/31", "1.2.3.5", "1.2.3.6" },
	{ "0.0.0.0/0", "127.0.0.1", "::1" },
	{ "128.0.0.0/1", "255.255.255.255", "127.255.255.255" },
	{ "::/0", "::1", "127.0.0.1" },
	{ "::/64", "::1", "127.0.0.1" },
	{ "::ffff:0:0/96", "127.0.0.1", "::1" },
	{ "::ffff:10.0.0.0/104", "10.1.1.1", "11.1.1.1" },
	{ "fd00::/8", "fdff::1", "fc00::1" },
	{ "fc00::/7", "fdff::1", "fe00::1" },
	{ "::1", "::1", "::2" },
	{ "::1/128", "::1", "::" },
	{ "2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::" },
};

static void test_cidr(void **state)
{
	for (size_t i = 0; i < ROWS(CIDRS); i++) {
		struct cidr c;
		struct address in = addr(CIDRS[i].inside), out = addr(CIDRS[i].outside);
		assert_true(cidr_parse(CIDRS[i].range, &c));
		assert_true(cidr_contains(&c, &in));
		assert_false(cidr_contains(&c, &out));
	}
}

static const char *const NO_CIDR[] = {
	"",
	"/",
	"/8",
	"10.0.0.0/",
	"10.0.0.0/33",
	"10.0.0.0/08",
	"10.0.0.0/8/8",
	"10.0.0.0/8 ",
	"10.0.0.0/+8",
	"10.0.0.0/-1",
	"10.0.0.0/4294967304",
	"10.0.0.0/255.0.0.0",
	"10.0.0.1/8",
	"10/8",
	"10.0.0/24",
	"0x0a.0.0.0/8",
	"::/129",
	"::1/127",
	"fd00::1/8",
	"[fd00::]/8",
	"fe80::%eth0/10",
	"1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24/8",
	"example.com",
};

static void test_no_cidr(void **state)
{
	for (size_t i = 0; i < ROWS(NO_CIDR); i++) {
		struct cidr c = { .bits = 77 };
		if (cidr_parse(NO_CIDR[i], &c)) {
			fail_msg("'%s' was taken for a range", NO_CIDR[i]);
		}
		assert_int_equal(c.bits, 77);
	}
}

static bool allowed(const char *address, const struct cidr *granted, size_t n, const char **kind)
{
	struct address a = addr(address);

	return guard_allows(&a, granted, n, kind);
}

static void test_guard(void **state)
{
	struct cidr granted[2];
	const char *kind = "none";

	assert_true(cidr_parse("10.0.0.0/8", &granted[0]));
	assert_true(cidr_parse("fd12::/16", &granted[1]));
	assert_true(allowed("8.8.8.8", NULL, 0, &kind));
	assert_string_equal(kind, "none");
	assert_false(allowed("10.0.0.1", NULL, 0, &kind));
	assert_string_equal(kind, "private");
	assert_true(allowed("10.0.0.1", granted, 2, &kind));
	assert_true(allowed("::ffff:10.0.0.1", granted, 2, &kind));
	assert_true(allowed("fd12::1", granted, 2, &kind));
	assert_false(allowed("fd12::1", granted, 1, &kind));
	assert_string_equal(kind, "unique_local");
	assert_false(allowed("127.0.0.1", granted, 2, &kind));
	assert_string_equal(kind, "loopback");
	/* a grant for 10.0.0.0/8 does not allow IPv6 addresses that contain such an address */
	assert_false(allowed("2002:a00:1::1", granted, 2, &kind));
	assert_string_equal(kind, "private");
	assert_false(allowed("64:ff9b::10.0.0.1", granted, 2, &kind));
	assert_false(allowed("::10.0.0.1", granted, 2, &kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),     cmocka_unit_test(test_forms),
		cmocka_unit_test(test_no_address), cmocka_unit_test(test_format),
		cmocka_unit_test(test_cidr),       cmocka_unit_test(test_no_cidr),
		cmocka_unit_test(test_guard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
