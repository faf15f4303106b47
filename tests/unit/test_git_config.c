/* test_git_config.c - the settings of git, read as git reads them: which hooks and which other
 * files they name. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/own.h"
#include "cases.h"
#include "wire/git_config.h"

static void note(void *arg, enum git_config_name name, const char *path)
{
	buf_addf(arg, "%c:%s|", "hit"[name], path);
}

/* Reads a copy that has exactly this size, so that a sanitizer reports a read past its end. */
static void reads(const char *text, size_t len, const char *found)
{
	auto_free char *exact = malloc(len > 0 ? len : 1);
	auto_buf out = BUF(1UL << 20);

	buf_adds(&out, "");
	memcpy(exact, text, len);
	git_config_read(exact, len, note, &out);
	if (found != NULL) {
		assert_string_equal(out.data, found);
	}
}

static void check_text(const struct test_case *c)
{
	reads(c->v[1], c->len[1], c->v[0]);
	for (size_t n = 0; n < c->len[1]; n++) {
		reads(c->v[1], n, NULL); /* cut anywhere, it is read without a fault */
	}
}

static void test_texts(void **state)
{
	cases_check("git_config.case", 2, check_text);
}

/* A path of the greatest length is found; one byte more is ignored. */
static void test_length(void **state)
{
	static char text[PATH_MAX + 64], found[PATH_MAX + 64];
	static const char HEAD[] = "[core]\nhooksPath = ";

	for (size_t n = PATH_MAX - 1; n <= PATH_MAX; n++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, HEAD, sizeof(HEAD) - 1);
		snprintf(found, sizeof(found), "h:%.*s|", (int)n, text + sizeof(HEAD) - 1);
		reads(text, sizeof(HEAD) - 1 + n, n < PATH_MAX ? found : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASES_TEST(test_texts),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests_name("git_config", tests, NULL, NULL);
}
