/* test_hook_words.c - the four readings of a shell command line. In the expected text, "%"
 * precedes a masked character, and "%." is a masked empty text. "!" alone means that the line is
 * not simple. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The command line is a program, not part of the library. */
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/hook_line.c"

static const struct hook_name NAMES[] = {
	{ "HOME", "/home/me" }, { "ODD", "a b" }, { "NONE", NULL }, { NULL, NULL }
};

struct row {
	const char *text, *want;
};

static void show_text(const struct buf *text, struct buf *out)
{
	for (const char *c = text->data; *c != '\0'; c++) {
		if (*c != MASK) {
			buf_addc(out, *c);
			continue;
		}
		char plain = (char)(*++c & 0x7f);
		buf_addf(out, "%%%c", plain != '\0' ? plain : '.');
	}
}

static size_t count_wrong(const char *text, size_t len, enum hook_reading how, const char *want)
{
	auto_buf got, shown;

	buf_init(&got, 1 << 16);
	buf_init(&shown, 1 << 16);
	buf_adds(&shown, "");
	if (!hook_line_read(&got, text, len, NAMES, how)) {
		buf_adds(&shown, "!");
	} else {
		show_text(&got, &shown);
	}
	if (strcmp(shown.data, want) != 0) {
		print_error("of: %s\n is: %s\nnot: %s\n", text, shown.data, want);
	}
	return strcmp(shown.data, want) != 0;
}

static void each_is(const struct row *v, size_t n, enum hook_reading how)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		wrong += count_wrong(v[i].text, strlen(v[i].text), how, v[i].want);
	}
	assert_int_equal(wrong, 0);
}

static void test_exact(void **state)
{
	static const struct row ROWS[] = {
		{ "", " ; " },
		{ "ls", " ; ls ; " },
		{ " a  b\tc ", " ; a b c ; " },
		{ "a 'b c' \"d e\" f\\ g", " ; a b% c d% e f% g ; " },
		{ "a''b\"\"c ''", " ; abc %. ; " },
		{ "a \"x\\\"y\\$z\\n\"", " ; a x\"y%$z\\n ; " },
		{ "a 'it'\\''s'", " ; a it's ; " },
		{ "a \\\n b\\\nc", " ; a bc ; " },
		{ "a && b || c; d | e", " ; a && b || c ; d | e ; " },
		{ "a\nb\n\n# c\nd # e\nf", " ; a ; b ; d ; f ; " },
		{ "a &&\n b", " ; a && b ; " },
		{ "a#b", " ; a#b ; " },
		{ "a >x 2>>y <z 2>&1", " ; a > x 2>> y < z 2>%&1 ; " },
		{ "a 2 >x 1>y", " ; a 2 > x 1> y ; " },
		{ "a 2>&1 >&2", " ; a 2>%&1 >%&2 ; " },
		{ "a '2'>x", " ; a 2 > x ; " },
		{ "a '>' x", " ; a %> x ; " },
		{ "~/x", " ; /home/me/x ; " },
		{ "a ~ x~", " ; a /home/me x~ ; " },
		{ "$HOME/x \"${HOME}/y\" '$HOME'", " ; /home/me/x /home/me/y %$HOME ; " },
		{ "$NONE/x $OTHER \"$ODD\" $ODD", " ; $/x $ a% b $ ; " },
		{ "a $ $1 $? $@x 'b$'", " ; a %$ $ $ $x b%$ ; " },
		{ "a *.c b? [c] {d,e} \\*", " ; a *.c b? [c] $d,e} %* ; " },
		{ "a '*.c' \"?\" {}", " ; a %*.c %? %{} ; " },
		{ "[ a ] ; [[ b ]]", " ; [ a ] ; [[ b ]] ; " },
		{ "a =b c=d", " ; a ?b c=d ; " },
		{ "a \"b!c\"", " ; a b!c ; " },
		{ "a\rb", " ; a?b ; " },
		{ "if a", " ; if a ; " },
		/* lines that are not simple */
		{ "a &", "!" },
		{ "a |& b", "!" },
		{ "a; ; b", "!" },
		{ "; a", "!" },
		{ "a &&", "!" },
		{ "a |", "!" },
		{ "a <<E\nb\nE", "!" },
		{ "a <<<b", "!" },
		{ "a &>w", "!" },
		{ "a >", "!" },
		{ "a > > x", "!" },
		{ "a > 2>x", "!" },
		{ "a 3>x", "!" },
		{ "12345>x a", "!" },
		{ "a >& x", "!" },
		{ "a2>x", "!" },
		{ "a 2>&1x", "!" },
		{ "a 2>&3", "!" },
		{ "a 2>&12", "!" },
		{ "a >| x", "!" },
		{ "a ~you", "!" },
		{ "a ~+/b", "!" },
		{ "a ${X:-y}b", "!" },
		{ "a $(b)", "!" },
		{ "a \"$(b)\"", "!" },
		{ "a `b`", "!" },
		{ "a \"`b`\"", "!" },
		{ "(a)", "!" },
		{ "a <(b)", "!" },
		{ "{ a; }", "!" },
		{ "a $'b'", "!" },
		{ "a $\"b\"", "!" },
		{ "a 'b", "!" },
		{ "a \"b", "!" },
		{ "a \\", "!" },
		{ "a \"b\\\nc\"", "!" },
	};

	each_is(ROWS, ARRAY_LEN(ROWS), HOOK_EXACT);
	assert_int_equal(count_wrong("a 'b\0c' d", 10, HOOK_EXACT, "!"), 0);
	assert_int_equal(count_wrong("a\0b", 3, HOOK_EXACT, "!"), 0);
}

static void test_flat(void **state)
{
	static const struct row JOINED[] = {
		{ "a 'b c' d\"e\"f g\\h", " ; a b c def gh ; " },
		{ "a\\\nb", " ; ab ; " },
		{ "a && b || c; d | e & f", " ; a ; b ; c ; d | e ; f ; " },
		{ "a $(b c)/d", " ; a $ ; b c ) */d ; " },
		{ "a \"$(b)\" c", " ; a $ ; b ) c ; " },
		{ "a `b c` d", " ; a $ ; b c ) d ; " },
		{ "case $a in b) c;; esac", " ; case $ in b ; c ; ; esac ; " },
		{ "(a; b)", " ; ; a ; b ) ; " },
		{ "a <<E\n$b\nE", " ; a < < E ; $ ; E ; " },
		{ "a <(b) 2>x", " ; a < ; b ) 2 < x ; " },
		{ "{ a; } {} x{b,c}", " ; ; a ; {} x$b,c ; " },
		{ "a ${HOME} ${X} ${X:-b}/c ${Y%/*}/d", " ; a /home/me $ $/b/c $/%/*/d ; " },
		{ "~/a ~you X=~/b a:~/c ~+/d",
		  " ; /home/me/a $you X=/home/me/b a:/home/me/c $/d ; " },
		{ "$'\\x61' $1 $@ \"$ODD\"", " ; $x61 $ $ a b ; " },
		{ "a # b", " ; a # b ; " },
	};
	static const struct row SPLIT[] = {
		{ "a 'b' \"c\"d", " ; a b c d ; " },
		{ "a 'b\\nc\\td\\_e\\.'", " ; a b ; c d e . ; " },
	};

	static const struct row BARE[] = {
		{ "a b", " ; a b ; " },
		{ "a 2>x b", " ; a b ; : x ; " },
		{ "a 2>&1 b|c &>d e", " ; a b | c e ; : 1 ; : d ; " },
		{ "a >|'b c'd e", " ; a e ; : b cd ; " },
		{ "a > >(b 2>c d) e", " ; a e ; : ; : ; b d ) ; ; : c ; " },
		{ "a \"b >c\"; d; \"e\"", " ; a b ; : c ; d ; e ; " },
		{ "a <<<\"$(b \\\"c)\" d", " ; a d ; : $ ; b c ) ; " },
		{ "a <", " ; a ; : ; " },
	};

	each_is(BARE, ARRAY_LEN(BARE), HOOK_BARE);
	each_is(JOINED, ARRAY_LEN(JOINED), HOOK_JOINED);
	each_is(SPLIT, ARRAY_LEN(SPLIT), HOOK_SPLIT);
}

/* Any text that is quoted is read back as one literal word. */
static void test_quote_round_trip(void **state)
{
	static const char *const TEXTS[] = { "",  "a",    "a b",      "it's", "$HOME", "`x`",
		                             "*", "a\nb", "~",        "'",    "\"",    "\\",
		                             "#", "=a",   "a=b",      "if",   "{a,b}", "!",
		                             ";", "-x",   "\xff\xfe", "2",    "{}",    "\1\x80" };

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		auto_buf quoted, got;
		buf_init(&quoted, 4096);
		buf_init(&got, 4096);
		buf_adds(&quoted, "x ");
		shell_quote(&quoted, TEXTS[i]);
		assert_true(hook_line_read(&got, quoted.data, quoted.len, NAMES, HOOK_EXACT));
		char *word = got.data + strlen(" ; x "), *end = strchr(word, ' ');
		assert_non_null(end);
		assert_string_equal(end, " ; ");
		*end = '\0';
		assert_null(strpbrk(word, "$*?[{!<>"));
		hook_line_unmask(word);
		assert_string_equal(word, TEXTS[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_quote_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
