/* test_hook_words.c - the readings of a shell command line. In the expected text, "%" is a masked
 * character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The command line is a program, not part of the library. */
#include "cli/hook_line.c"

#include "cli/hook_skill.c"

#include "cli/hook_reason.c"

#include "cli/hook_judge.c"

static const struct hook_name NAMES[] = { { "HOME", "/home/me" },
	                                  { "NONE", NULL },
	                                  { NULL, NULL } };

struct row {
	const char *text, *want;
};

static void each_is(const struct row *v, size_t n, enum hook_reading how)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		auto_free char *got = hook_line_read(v[i].text, strlen(v[i].text), NAMES, how);
		for (char *c = got; (c = strchr(c, *HOOK_MASK)) != NULL;) {
			*c = '%';
		}
		if (strcmp(got, v[i].want) != 0) {
			print_error("of: %s\n is: %s\nnot: %s\n", v[i].text, got, v[i].want);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* Of these lines, all are simple. */
static void test_shown(void **state)
{
	static const struct row ROWS[] = {
		{ "", " ; ; " },
		{ "ls", " ; ls ; " },
		{ " a  b\tc ", " ; a b c ; " },
		{ "a 'b c' \"d e\" f\\ g", " ; a b%c d%e f%g ; " },
		{ "a''b\"\"c ''", " ; abc ; " },
		{ "a \"x\\\"y\\$z\\n\"", " ; a x\"y%zn ; " },
		{ "a 'it'\\''s'", " ; a it's ; " },
		{ "a \\\n b\\\nc", " ; a bc ; " },
		{ "a && b || c; d | e", " ; a ; b ; c ; d | e ; " },
		{ "a#b", " ; a#b ; " },
		{ "a >x 2>>y <z 2>&1", " ; a > x 2 > y < z 2 ; " },
		{ "a '>' x", " ; a % x ; " },
		{ "~/x", " ; /home/me/x ; " },
		{ "a ~ x~", " ; a /home/me x~ ; " },
		{ "$HOME/x \"${HOME}/y\" '$HOME'", " ; /home/me/x /home/me/y %HOME ; " },
		{ "$NONE/x $OTHER", " ; $/x $ ; " },
		{ "a $1 $? $@x 'b$'", " ; a $ $ $x b% ; " },
		{ "a *.c b? [c] {d,e} \\*", " ; a *.c b? [c] $d,e % ; " },
		{ "a '*.c' \"?\" {} '{}'", " ; a %.c % {} %% ; " },
		{ "[ a ] ; [[ b ]]", " ; [ a ] ; [[ b ]] ; " },
		{ "a 3>x", " ; a 3 > x ; " },
		{ "a ~you b~+/c", " ; a $you b~+/c ; " },
	};

	each_is(ROWS, ARRAY_LEN(ROWS), HOOK_SHOWN);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		if (!hook_line_matches(ROWS[i].text, SIMPLE)) {
			fail_msg("not simple: %s", ROWS[i].text);
		}
	}
}

static void test_not_simple(void **state)
{
	static const char *const LINES[] = {
		"a &",         "a |& b",     "a &&& b",   "a <<E\nb\nE",   "a <<<b",
		"a &>w",       "a >",        "a > > x",   "a >& x",        "a 2>&3",
		"a >| x",      "a ${X:-y}b", "a $(b)",    "a \"$(b)\"",    "a `b`",
		"a \"`b`\"",   "(a)",        "a <(b)",    "{ a; }",        "a $'b'",
		"a $\"b\"",    "a 'b",       "a \"b",     "a \\",          "a # b",
		"a#`b`",       "a #`b`",     "a $((1))",  "a \"${b[c]}\"", "a\rb",
		"a {b,'c d'}", "$[a]",       "a \"b\\\"", "a\1b",
	};

	for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
		if (hook_line_matches(LINES[i], SIMPLE)) {
			fail_msg("simple: %s", LINES[i]);
		}
	}
}

static void test_flat(void **state)
{
	static const struct row JOINED[] = {
		{ "a && b || c; d | e & f", " ; a ; b ; c ; d | e ; f ; " },
		{ "a $(b c)/d", " ; a $ ; b c ) $/d ; " },
		{ "a `b c` d", " ; a $ ; b c $ ; d ; " },
		{ "(a; b)", " ; ; a ; b ) ; " },
		{ "a <<E\n$b\nE", " ; a < < E ; $ ; E ; " },
		{ "a <(b) 2>x 2>&1", " ; a < ; b ) 2 > x 2 ; " },
		{ "{ a; } {} x{b,c}", " ; ; a ; {} x$b,c ; " },
		{ "a ${HOME} ${X} ${X:-b}/c ${Y%/*}/d", " ; a /home/me $ $/b/c $/%/*/d ; " },
		{ "~/a ~you X=~/b a:~/c ~+/d",
		  " ; /home/me/a $you X=/home/me/b a:/home/me/c $/d ; " },
		{ "a # b", " ; a # b ; " },
	};
	static const struct row TWICE[] = {
		{ "a 'b c' d\"e\"f g\\h", " ; a b c def gh ; a b c d e f g h ; " },
		{ "a 'b\\nc\\td\\_e'", " ; a bnctd_e ; a b ; c d e ; " },
		{ "a\\\nb", " ; ab ; a b ; " },
		{ "a \"$(b)\" c", " ; a $ ; b ) c ; a $ ; b ) c ; " },
	};

	each_is(JOINED, ARRAY_LEN(JOINED), HOOK_FLAT);
	each_is(TWICE, ARRAY_LEN(TWICE), HOOK_FLAT);
}

/* Any text that is quoted is shown as one literal word of a simple line. */
static void test_quoted(void **state)
{
	static const char *const TEXTS[] = { "a",    "a b",      "it's", "$HOME", "`x`",     "*",
		                             "a\nb", "~",        "'",    "\"",    "\\",      "#",
		                             "=a",   "a=b",      "if",   "{a,b}", "!",       ";",
		                             "-x",   "\xff\xfe", "2",    "{}",    "\x01\x7f" };

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		auto_buf quoted;
		buf_init(&quoted, 4096);
		buf_adds(&quoted, "x ");
		shell_quote(&quoted, TEXTS[i]);
		assert_true(hook_line_matches(quoted.data, SIMPLE));
		auto_free char *got = hook_line_read(quoted.data, quoted.len, NAMES, HOOK_SHOWN);
		assert_int_equal(strlen(got), strlen(TEXTS[i]) + strlen(" ; x  ; "));
		assert_null(strpbrk(got + 5, "$*?[{!<>|&()`\n#"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_not_simple),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
