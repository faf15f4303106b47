/* Git's settings, as git reads them: what they say of hooks and of further files. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "wire/git_config.h"

#define TEXT(s) s, sizeof(s) - 1

static const struct {
	const char *text;
	size_t len;
	const char *found; /* "h:" or "i:", the path, a "|" */
} CASES[] = {
	{ TEXT("[core]\n\thooksPath = myhooks\n"), "h:myhooks|" },
	{ TEXT("[CORE]\nHOOKSPATH=myhooks"), "h:myhooks|" },
	{ TEXT("[core] hookspath = x"), "h:x|" },
	{ TEXT("[core]hooksPath\t=\tx\t\n"), "h:x|" },
	{ TEXT("\xef\xbb\xbf[core]\r\n\thooksPath = x\r\n"), "h:x|" },
	{ TEXT("[include]\npath = a\n[includeIf \"gitdir:/x/\"]\npath = b\npath = c\n"),
	  "i:a|i:b|i:c|" },
	{ TEXT("[IncludeIf \"a ] \\\" b\"] Path = x\n"), "i:x|" },
	{ TEXT("[core]\nhooksPath = a\n[include]\npath=b\n[core]\nhooksPath = c\n"),
	  "h:a|i:b|h:c|" },
	/* quotes, escapes, spaces, comments */
	{ TEXT("[core]\nhooksPath = \"my hooks\"\n"), "h:my hooks|" },
	{ TEXT("[core]\nhooksPath = my hooks  \n"), "h:my hooks|" },
	{ TEXT("[core]\nhooksPath = my\" \"ho\"\"oks\" \"\n"), "h:my hooks |" },
	{ TEXT("[core]\nhooksPath = \"a#b\" # c\n"), "h:a#b|" },
	{ TEXT("[core]\nhooksPath = a ; c\n"), "h:a|" },
	{ TEXT("[core]\nhooksPath = a\\\\b\\\"c\\td\n"), "h:a\\b\"c\td|" },
	{ TEXT("[core]\nhooksPath = my\\\nhooks\n"), "h:myhooks|" },
	{ TEXT("[core]\nhooksPath = my\\\r\nhooks\n"), "h:myhooks|" },
	{ TEXT("[core]\nhooksPath = \\\n  x \\\n"), "h:x |" }, /* as git has it */
	{ TEXT("[core]\nhooksPath = a \\\n  b\\\n\n"), "h:a   b|" },
	{ TEXT("[core]\n# hooksPath = a \\\nhooksPath = b\n; hooksPath = c\n"), "h:b|" },
	{ TEXT("# c\n[core] # c\n; c\nhooksPath = b"), "h:b|" },
	{ TEXT("[core]\nhooksPath = b # c \\\nhooksPath = d\n"), "h:b|h:d|" },
	{ TEXT("[core]\nbare = false\neditor = \"vi \\\"\\\\\"\nhooksPath = b\n"), "h:b|" },
	/* of other names */
	{ TEXT("[core \"x\"]\nhooksPath = a\n[core.x]\nhooksPath = a\n"), "" },
	{ TEXT("[include \"x\"]\npath = a\n[includeIf]\npath = a\n[remote]\npath = a\n"), "" },
	{ TEXT("[core]\nhooks = a\nhooksPathx = a\nx.hooksPath = a\n"), "" },
	{ TEXT("[corecorecorecorecorecorecorecorecorecorecorecorecorecorecorecorecorecore]\n"
	       "hooksPath = a\n"),
	  "" },
	{ TEXT("hooksPath = a\n"), "" },
	/* without a value */
	{ TEXT("[core]\nhooksPath\n"), "" },
	{ TEXT("[core]\nhooksPath ="), "" },
	{ TEXT("[core]\nhooksPath = \"\"\n"), "" },
	{ TEXT("[core]\nhooksPath = # a\n"), "" },
	/* at which git stops: what comes behind it is read all the same */
	{ TEXT("[core]\nhooksPath = \"a\nhooksPath = b\n"), "h:b|" },
	{ TEXT("[core]\nhooksPath = a\\qb\nhooksPath = c\n"), "h:c|" },
	{ TEXT("[core]\nhooksPath : a\n=\n]\n\"\nhooksPath = b\n"), "h:b|" },
	{ TEXT("[core\nhooksPath = a\n[core]\nhooksPath = b\n"), "h:b|" },
	{ TEXT("[core \"x\nhooksPath = a\n[core]\nhooksPath = b\n"), "h:b|" },
	/* bytes of no text */
	{ TEXT("[core]\nhooksPath = a\0b\nhooksPath = c\n"), "h:a|h:c|" },
	{ TEXT("[core]\n\0hooksPath = a\nhooks\0Path = b\nhooksPath = \xff\xfe\n"), "h:\xff\xfe|" },
	{ TEXT("[core]\nhooksPath = a\rb\n"), "h:a\rb|" },
	{ TEXT(""), "" },
	{ TEXT("["), "" },
	{ TEXT("[\""), "" },
	{ TEXT("[\"\\"), "" },
	{ TEXT("[core]\nhooksPath = \\"), "" },
	{ TEXT("[core]\nhooksPath = \""), "" },
	{ TEXT("\xef\xbb"), "" },
};

static void note(void *arg, enum git_config_name name, const char *path)
{
	buf_addf(arg, "%c:%s|", name == GIT_CONFIG_HOOKS ? 'h' : 'i', path);
}

/* In memory of its exact size, so that a byte too many is seen. */
static void reads(const char *text, size_t len, const char *found)
{
	auto_free char *exact = malloc(len > 0 ? len : 1);
	auto_buf out;

	buf_init(&out, 1UL << 20);
	buf_adds(&out, "");
	memcpy(exact, text, len);
	git_config_read(exact, len, note, &out);
	if (found != NULL) {
		assert_string_equal(out.data, found);
	}
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		reads(CASES[i].text, CASES[i].len, CASES[i].found);
	}
}

static void test_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		for (size_t n = 0; n < CASES[i].len; n++) {
			reads(CASES[i].text, n, NULL);
		}
	}
}

/* As long as a path can be, and one byte more. */
static void test_length(void **state)
{
	static char text[PATH_MAX + 64], found[PATH_MAX + 64];
	static const char HEAD[] = "[core]\nhooksPath = ";

	(void)state;
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
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests_name("git_config", tests, NULL, NULL);
}
