/* Hosts and public suffixes: what is accepted, in which form, and what not. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/own.h"
#include "manifest/manifest.h"
#include "manifest/psl.h"

#define L63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *in;
	const char *out;
	enum host_kind kind;
} GOOD[] = {
	{ "api.example.com", "api.example.com", HOST_EXACT },
	{ "API.Example.COM", "api.example.com", HOST_EXACT },
	{ "api.example.com.", "api.example.com", HOST_EXACT },
	{ "localhost", "localhost", HOST_EXACT },
	{ "a_b.example.com", "a_b.example.com", HOST_EXACT },
	{ "_srv._tcp.example.com", "_srv._tcp.example.com", HOST_EXACT },
	{ "1.2.3.4.example.com", "1.2.3.4.example.com", HOST_EXACT },
	{ "3com.com", "3com.com", HOST_EXACT },
	{ "0x7f.example", "0x7f.example", HOST_EXACT },
	{ "xn--bcher-kva.example", "xn--bcher-kva.example", HOST_EXACT },
	{ "github.io", "github.io", HOST_EXACT },
	{ L63 ".com", L63 ".com", HOST_EXACT },
	{ L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61, HOST_EXACT }, /* 253 */
	{ "*.example.com", "*.example.com", HOST_WILDCARD },
	{ "*.Example.com.", "*.example.com", HOST_WILDCARD },
	{ "*.a.b.example.co.uk", "*.a.b.example.co.uk", HOST_WILDCARD },
	{ "*.someone.github.io", "*.someone.github.io", HOST_WILDCARD },
	{ "*.www.ck", "*.www.ck", HOST_WILDCARD },
	{ "*.city.kobe.jp", "*.city.kobe.jp", HOST_WILDCARD },
	{ "192.0.2.1", "192.0.2.1", HOST_ADDRESS },
	{ "192.0.2.1.", "192.0.2.1", HOST_ADDRESS },
	{ "0.0.0.0", "0.0.0.0", HOST_ADDRESS },
	{ "255.255.255.255", "255.255.255.255", HOST_ADDRESS },
	{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1", HOST_ADDRESS },
	{ "[2001:db8::1]", "2001:db8::1", HOST_ADDRESS },
	{ "::1", "::1", HOST_ADDRESS },
	{ "::ffff:127.0.0.1", "127.0.0.1", HOST_ADDRESS }, /* the same address */
	{ "::ffff:10.0.0.0/104", "10.0.0.0/8", HOST_CIDR },
	{ "192.0.2.0/24", "192.0.2.0/24", HOST_CIDR },
	{ "192.0.2.1/32", "192.0.2.1/32", HOST_CIDR },
	{ "128.0.0.0/1", "128.0.0.0/1", HOST_CIDR },
	{ "2001:DB8::/32", "2001:db8::/32", HOST_CIDR },
	{ "::1/128", "::1/128", HOST_CIDR },
};

/* The word is part of the text that the user gets. */
static const struct {
	const char *in;
	const char *word;
} BAD[] = {
	{ "", "is empty" },
	{ "*", "every host" },
	{ "*.", "every host" },
	{ "*..", "empty label" },
	{ "*.*", "wrong place" },
	{ "*.*.example.com", "wrong place" },
	{ "api.*.com", "wrong place" },
	{ "api*.example.com", "wrong place" },
	{ "*api.example.com", "wrong place" },
	{ "example.*", "wrong place" },
	{ "*.com", "public suffix" },
	{ "*.COM.", "public suffix" },
	{ "*.co.uk", "public suffix" },
	{ "*.github.io", "public suffix" },
	{ "*.localhost", "public suffix" },
	{ "*.anything.ck", "public suffix" },
	{ "*.kobe.jp", "public suffix" },
	{ "*.kyoto.jp", "public suffix" },
	{ "*.xn--p1ai", "public suffix" },
	{ "*.xn--55qx5d.cn", "public suffix" },
	{ "*.amazonaws.com", "lies beneath" },
	{ "*.1.2.3.4", "number in place of a host" },
	{ "*.192.0.2.1", "number in place of a host" },
	{ "https://example.com", "scheme" },
	{ "https://example.com/x", "scheme" },
	{ "//example.com", "path" },
	{ "example.com/x", "path" },
	{ "example.com/", "path" },
	{ "example.com:443", "port" },
	{ "192.0.2.1:80", "port" },
	{ "[2001:db8::1]:443", "port" },
	{ "user@example.com", "user" },
	{ "exa mple.com", "space" },
	{ " example.com", "space" },
	{ "example.com\n", "space or control" },
	{ "exam\x7fple.com", "space or control" },
	{ ".", "empty label" },
	{ ".example.com", "empty label" },
	{ "a..example.com", "empty label" },
	{ "example.com..", "empty label" },
	{ "-a.example.com", "begins or ends with" },
	{ "a-.example.com", "begins or ends with" },
	{ "ex%61mple.com", "no host name has" },
	{ "exam+ple.com", "no host name has" },
	{ "a,b.com", "no host name has" },
	{ L63 "a.com", "longer than 63" },
	{ L63 "." L63 "." L63 "." L61 "a", "longer than 253" },
	{ "127.1", "number in place of a host" },
	{ "2130706433", "number in place of a host" },
	{ "0x7f.1", "number in place of a host" },
	{ "0x7f000001", "number in place of a host" },
	{ "0X7F000001", "number in place of a host" },
	{ "127.0.0.0x1", "number in place of a host" },
	{ "127.0.0.0x", "number in place of a host" },
	{ "0177.0.0.1", "number in place of a host" },
	{ "127.0.0.01", "number in place of a host" },
	{ "256.0.0.1", "number in place of a host" },
	{ "1.2.3.4.5", "number in place of a host" },
	{ "example.123", "number in place of a host" },
	{ "1.2.3", "number in place of a host" },
	{ "fe80::1%eth0", "interface" },
	{ "2001:db8::1::2", "IPv6" },
	{ "[::1", "IPv6" },
	{ "[", "IPv6" },
	{ "[]", "IPv6" },
	{ "[::1]x", "IPv6" },
	{ "[1.2.3.4]", "IPv6" },
	{ ":::::::::::::::::::::::::::::::::::::::::::::::::::::::::::", "IPv6" },
	{ "192.0.2.0/33", "address range" },
	{ "192.0.2.0/", "address range" },
	{ "192.0.2.0/024", "address range" },
	{ "192.0.2.0/24/1", "address range" },
	{ "192.0.2.0/-1", "address range" },
	{ "192.0.2.0/1000", "address range" },
	{ "2001:db8::/129", "address range" },
	{ "192.0.2.1/24", "bits set" },
	{ "2001:db8::1/64", "bits set" },
	{ "0.0.0.0/0", "every address" },
	{ "::/0", "every address" },
	{ "::ffff:0:0/96", "every address" },
	{ "::ffff:1.2.3.4/96", "bits set" },
	{ "[127.0.0.1]", "not an IPv6 address" },
	{ "127.1/8", "path" },
};

static void good_hosts_are_normalised(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		auto_free char *out = NULL;
		enum host_kind kind = HOST_EXACT;
		const char *problem = domain_check(GOOD[i].in, &out, &kind);
		if (problem != NULL) {
			fail_msg("%s: refused: %s", GOOD[i].in, problem);
		}
		assert_string_equal(out, GOOD[i].out);
		assert_int_equal(kind, GOOD[i].kind);
	}
}

static void bad_hosts_are_refused_with_the_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		char *out = NULL;
		enum host_kind kind = HOST_CIDR;
		const char *problem = domain_check(BAD[i].in, &out, &kind);
		if (problem == NULL) {
			fail_msg("%s: accepted as %s", BAD[i].in, out);
		}
		if (strstr(problem, BAD[i].word) == NULL) {
			fail_msg("%s: \"%s\" is not in: %s", BAD[i].in, BAD[i].word, problem);
		}
		assert_non_null(strstr(problem, "; ")); /* a remedy */
		assert_null(out);
		assert_int_equal(kind, HOST_CIDR);
	}
}

static void long_input_is_refused(void **state)
{
	char s[4097];
	char *out = NULL;
	enum host_kind kind = HOST_EXACT;

	(void)state;
	memset(s, 'a', sizeof(s) - 1);
	s[sizeof(s) - 1] = '\0';
	assert_non_null(strstr(domain_check(s, &out, &kind), "longer"));
}

static const struct {
	const char *in;
	const char *out; /* NULL: refused */
} IDNA[] = {
	{ "bücher.example", "xn--bcher-kva.example" },
	{ "BÜCHER.example", "xn--bcher-kva.example" },
	{ "straße.example", "xn--strae-oqa.example" },
	{ "bücher。example", "xn--bcher-kva.example" },
	{ "*.bücher.example", "*.xn--bcher-kva.example" },
	{ "ｅｘａｍｐｌｅ.com", "example.com" },
	{ "*.公司.cn", NULL }, /* a public suffix in its own script */
	{ "*.рф", NULL },
	{ "１２７.1", NULL }, /* full-width digits make an odd number */
	{ "bü cher.example", NULL },
	{ "bü/cher.example", NULL },
	{ "example／path.com", NULL },
	{ "bü_cher.example／x", NULL },
	{ "bücher.example:443", NULL },
	{ "b\xff.example", NULL },        /* not UTF-8 */
	{ "\xe2\x80\x8d.example", NULL }, /* a lone joiner */
};

static void international_names_become_a_labels(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(IDNA); i++) {
		auto_free char *out = NULL;
		enum host_kind kind = HOST_EXACT;
		const char *problem = domain_check(IDNA[i].in, &out, &kind);
		if (IDNA[i].out == NULL) {
			if (problem == NULL) {
				fail_msg("%s: accepted as %s", IDNA[i].in, out);
			}
			continue;
		}
		if (problem != NULL) {
			fail_msg("%s: refused: %s", IDNA[i].in, problem);
		}
		assert_string_equal(out, IDNA[i].out);
	}
}

/* Stands before libc's: a machine without libidn2. */
static bool no_libraries;
void *dlopen(const char *file, int mode)
{
	static void *(*real)(const char *, int);

	if (real == NULL) {
		*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	}
	return no_libraries ? NULL : real(file, mode);
}

static void without_libidn2_the_remedy_is_the_ascii_form(void **state)
{
	char *out = NULL;
	enum host_kind kind = HOST_EXACT;

	(void)state;
	no_libraries = true;
	const char *problem = domain_check("bücher.example", &out, &kind);
	const char *ascii_problem = domain_check("xn--bcher-kva.example", &out, &kind);
	no_libraries = false;
	assert_non_null(problem);
	assert_non_null(strstr(problem, "write the xn-- form"));
	assert_null(ascii_problem); /* nothing is loaded for it */
	free(out);
}

static const struct {
	const char *name;
	bool suffix;
	bool above; /* a suffix lies beneath */
} PSL[] = {
	{ "com", true, true },
	{ "zw", true, true },         /* near the end of the table */
	{ "aaa", true, false },       /* its first rule */
	{ "nosuchtld", true, false }, /* the default rule */
	{ "co.uk", true, true },
	{ "example.co.uk", false, false },
	{ "github.io", true, false },
	{ "x.github.io", false, false },
	{ "ck", true, true },
	{ "foo.ck", true, false },
	{ "bar.foo.ck", false, false },
	{ "www.ck", false, false },
	{ "kobe.jp", false, true }, /* only *.kobe.jp is listed */
	{ "city.kobe.jp", false, false },
	{ "amazonaws.com", false, true },
	{ "example.com", false, false },
	{ "xn--p1ai", true, false },
	{ "", false, false },
};

static void public_suffix_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(PSL); i++) {
		if (psl_is_suffix(PSL[i].name) != PSL[i].suffix) {
			fail_msg("%s: suffix is not %d", PSL[i].name, PSL[i].suffix);
		}
		if (psl_has_suffix_beneath(PSL[i].name) != PSL[i].above) {
			fail_msg("%s: beneath is not %d", PSL[i].name, PSL[i].above);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_hosts_are_normalised),
		cmocka_unit_test(bad_hosts_are_refused_with_the_reason),
		cmocka_unit_test(long_input_is_refused),
		cmocka_unit_test(international_names_become_a_labels),
		cmocka_unit_test(without_libidn2_the_remedy_is_the_ascii_form),
		cmocka_unit_test(public_suffix_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
