/* test_check.c - checks of single values. The owner's flags and the owner's files use the same
 * checks. */
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"

static const struct {
	const char *in;
	const char *out; /* NULL: refused */
} PATHS[] = {
	{ "/", "/" },
	{ "//", "/" },
	{ "/.", "/" },
	{ "/./", "/" },
	{ "/a", "/a" },
	{ "/a/", "/a" },
	{ "//a//b//", "/a/b" },
	{ "/a/./b/.", "/a/b" },
	{ "/a/...", "/a/..." },
	{ "/..a/b..", "/..a/b.." },
	{ "/.hidden", "/.hidden" },
	{ "~", "~" },
	{ "~/", "~" },
	{ "~/.", "~" },
	{ "~//a/", "~/a" },
	{ "/a/~", "/a/~" },
	{ "/a b", "/a b" },
	{ "/\xff", "/\xff" },
	{ "", NULL },
	{ ".", NULL },
	{ "a/b", NULL },
	{ "..", NULL },
	{ "/..", NULL },
	{ "/a/..", NULL },
	{ "/../a", NULL },
	{ "~/..", NULL },
	{ "~a", NULL },
	{ "~a/b", NULL },
	{ "~..", NULL },
	{ "$HOME", NULL },
	{ "/a\nb", NULL },
	{ "/a\x7f", NULL },
};

static void paths(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
		auto_free char *out = NULL;
		const char *problem = check_path(PATHS[i].in, &out);
		if ((problem == NULL) != (PATHS[i].out != NULL)) {
			fail_msg("%s: %s", PATHS[i].in, problem != NULL ? problem : out);
		}
		if (PATHS[i].out != NULL) {
			assert_string_equal(out, PATHS[i].out);
		} else {
			assert_null(out);
			assert_non_null(strstr(problem, "; "));
		}
	}
}

static void path_length(void **state)
{
	char s[MAX_PATH_BYTES + 1];
	auto_free char *out = NULL;

	memset(s, 'a', sizeof(s));
	s[0] = '/';
	s[MAX_PATH_BYTES] = '\0'; /* with its NUL, this path is one byte too long */
	assert_non_null(strstr(check_path(s, &out), "longer"));
	s[MAX_PATH_BYTES - 1] = '\0';
	assert_null(check_path(s, &out));
	assert_string_equal(out, s);
}

static void env_names(void **state)
{
	static const char *const good[] = { "A", "_", "a1_B", "LANG", "_1" };
	static const char *const bad[] = {
		"",  "1",  "1A", "A-B",  "A B", "A=",  "=A",  "A=b",
		"*", "A*", "A?", "A[B]", "$A",  "A.B", "A\n", "\xc3\xa4"
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_null(check_env_name(good[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *problem = check_env_name(bad[i]);
		if (problem == NULL) {
			fail_msg("%s: accepted", bad[i]);
		}
		assert_non_null(strstr(problem, "; "));
	}
}

static void names_go_both_ways(void **state)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile_from_name(profile_name((enum profile)i)), i);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(protocol_from_name(protocol_name((enum protocol)i)), i);
	}
	assert_int_equal(profile_from_name("none"), -1);
	assert_int_equal(protocol_from_name("TCP"), -1);
	manifest_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(path_length),
		cmocka_unit_test(env_names),
		cmocka_unit_test(names_go_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
