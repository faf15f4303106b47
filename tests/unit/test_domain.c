/* test_domain.c - hosts and public suffixes: which texts are accepted, in which form they are
 * stored, and which are refused. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "cases.h"
#include "manifest/manifest.h"
#include "manifest/psl.h"

static const char *name_kind(enum host_kind kind)
{
	static const char *const NAMES[] = { [HOST_EXACT] = "exact",
		                             [HOST_WILDCARD] = "wildcard",
		                             [HOST_ADDRESS] = "address",
		                             [HOST_CIDR] = "range" };

	return NAMES[kind];
}

static void check_host(const struct test_case *c)
{
	auto_free char *out = NULL;
	bool refused = strcmp(c->v[0], "refused") == 0;
	const enum host_kind before = strcmp(c->v[0], "range") == 0 ? HOST_EXACT : HOST_CIDR;
	enum host_kind kind = before;
	const char *problem = domain_check(c->v[2], &out, &kind);

	if (!refused && problem == NULL) {
		cases_expect(c, 0, name_kind(kind));
		cases_expect(c, 1, out);
	} else if (!refused) {
		cases_fail(c, problem);
	} else if (problem == NULL) {
		cases_fail(c, out);
	} else {
		cases_expect_part(c, 1, problem);
		if (strstr(problem, "; ") == NULL) {
			cases_fail(c, "the reason has no remedy");
		}
		assert_null(out);
		assert_int_equal(kind, before);
	}
}

static void hosts(void **state)
{
	cases_check("domain.case", 3, check_host);
}

static void long_input_is_refused(void **state)
{
	char s[4097];
	char *out = NULL;
	enum host_kind kind = HOST_EXACT;

	memset(s, 'a', sizeof(s) - 1);
	s[sizeof(s) - 1] = '\0';
	assert_non_null(strstr(domain_check(s, &out, &kind), "longer"));
}

/* Replaces dlopen() of libc. With no_libraries, the machine seems to have no libidn2. */
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

	no_libraries = true;
	const char *problem = domain_check("bücher.example", &out, &kind);
	const char *ascii_problem = domain_check("xn--bcher-kva.example", &out, &kind);
	no_libraries = false;
	assert_non_null(problem);
	assert_non_null(strstr(problem, "write the xn-- form"));
	assert_null(ascii_problem); /* the ASCII form needs no library */
	free(out);
}

static void check_suffix(const struct test_case *c)
{
	cases_expect(c, 0, psl_is_suffix(c->v[2]) ? "yes" : "no");
	cases_expect(c, 1, psl_has_suffix_beneath(c->v[2]) ? "yes" : "no");
}

static void public_suffix_rules(void **state)
{
	cases_check("public_suffix.case", 3, check_suffix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASES_TEST(hosts),
		cmocka_unit_test(long_input_is_refused),
		cmocka_unit_test(without_libidn2_the_remedy_is_the_ascii_form),
		CASES_TEST(public_suffix_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
