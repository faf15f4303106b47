/* test_hook_words.c - the reader of shell command lines: what each line would start, word by word.
 * In the expected text words are in <>, ~<> is a word that is not plain, and joins are between
 * them. */
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
	{ "HOME", "/home/me", false }, { "ODD", "a b", false }, { "NONE", NULL, false },
	{ "NEAR", "/bin", true },      { NULL, NULL, false },
};

static const struct {
	char join;
	const char *text;
} JOINS[] = { { '\0', "" },   { '&', " && " }, { 'o', " || " }, { ';', " ; " },
	      { '|', " | " }, { '(', " ( " },  { ')', " ) " } };

static void show(const struct hook_line *line, struct buf *out)
{
	buf_adds(out, line->odd ? "!" : "");
	for (size_t i = 0; i < line->n_commands; i++) {
		const struct hook_command *c = &line->commands[i];
		for (size_t k = 0; k < ARRAY_LEN(JOINS); k++) {
			buf_adds(out, c->join == JOINS[k].join ? JOINS[k].text : "");
		}
		for (size_t k = 0; k < c->n_words; k++) {
			buf_addf(out, "%s<%s>", c->words[k].plain ? "" : "~", c->words[k].text);
		}
		for (size_t k = 0; k < c->n_redirects; k++) {
			buf_addf(out, "%s[%s]", c->redirects[k].op, c->redirects[k].text);
		}
	}
}

static void expect(const char *text, size_t len, bool nested, const char *want)
{
	struct hook_line line = { 0 };
	auto_buf got;

	buf_init(&got, 65536);
	assert_int_equal(hook_line_read(&line, text, len, NAMES, nested), 0);
	show(&line, &got);
	if (strcmp(got.data != NULL ? got.data : "", want) != 0) {
		print_error("of: %s\n", text);
	}
	assert_string_equal(got.data != NULL ? got.data : "", want);
	hook_line_done(&line);
}

static void test_lines(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *want;
	} CASES[] = {
		{ "", "" },
		{ "ls", "<ls>" },
		{ " a  b\tc ", "<a><b><c>" },
		{ "a 'b c' \"d e\" f\\ g", "<a><b c><d e><f g>" },
		{ "a''b\"\"c ''", "<abc><>" },
		{ "a \"x\\\"y\\$z\\n\"", "<a><x\"y$z\\n>" },
		{ "a 'it'\\''s'", "<a><it's>" },
		{ "a \\\n b", "<a><b>" },
		{ "a b\\\nc", "<a><bc>" },
		{ "a && b || c; d | e |& f & g", "!<a> && <b> || <c> ; <d> | <e> ; <f> ; <g>" },
		{ "a\nb\n\n# c\nd # e\nf", "<a> ; <b> ; <d> ; <f>" },
		{ "a &&\n b", "<a> && <b>" },
		{ "a#b", "<a#b>" },
		{ "a >x 2>>y <z 2>&1 &>w", "!<a>>[x]2>>[y]<[z]2>&[1] ; >[w]" },
		{ "a 2 >x", "<a><2>>[x]" },
		{ "a2>x", "<a2>>[x]" },
		{ "12345>x a", "!<a>1>[x]" },
		{ "a <<E\nb\nE", "!<a><[E] ; <b> ; <E>" },
		{ "a <<E\n$b\nE", "!<a><[E] ; ~<*> ; <E>" },
		{ "a <<E\n$(b)\nE", "!<a><[E] ; ~<*> ( <b> ) <E>" },
		{ "a <<'E'\n$b\nE\nc", "!<a><[E] ; ~<*> ; <E> ; <c>" },
		{ "a <<\\E >f; b <<-F\n`x`\nE\n\tG\n\tF\nc",
		  "!<a><[E]>[f] ; <b><[-F] ; ~<*> ( <x> ) <E> ; <G> ; <F> ; <c>" },
		{ "a \"$(b <<'E'\nit's\nE\n)\" c", "!<a>~<*> ( <b><[E] ; <its\nE\n)\" c>" },
		{ "a <<E\nb", "!<a><[E] ; <b>" },
		{ "a <<E 'x\nE\n'", "!<a><x\nE\n><[E]" },
		{ "a <<E \"'\" '\nE\n'", "!<a><'><\nE\n><[E]" },
		{ "a <<$X\nb\n*\n", "!<a><[*] ; <b> ; ~<*>" },
		{ "a <<<b", "!<a><[b]" },
		{ "a >", "!<a>" },
		{ "~/x", "</home/me/x>" },
		{ "a ~ ~/b x~ ~you", "<a></home/me></home/me/b><x~>~<*>" },
		{ "a ~+/b ~-/c ~1 $NEAR", "<a>~<*/b>~<*/c>~<*>~</bin>" },
		{ "$HOME/x \"${HOME}/y\" '$HOME'", "</home/me/x></home/me/y><$HOME>" },
		{ "$NONE/x $OTHER \"$ODD\" $ODD", "~<*/x>~<*><a b>~<*>" },
		{ "a $ $1 $? $@x", "<a><$>~<*>~<*>~<*x>" },
		{ "a ${X:-y}b", "!<a>~<*X:-y}b>" },
		{ "a $(b c) d", "!<a>~<*> ( <b><c> ) <d>" },
		{ "a \"$(b 'c)')\" d", "!<a>~<*> ( <b><c)> ) ~<*><d>" },
		{ "a `b c` d", "!<a>~<*> ( <b><c> ) <d>" },
		{ "a $((1+1))", "!<a>~<*> ( <1+1>" },
		{ "(a; b) && c", "! ( <a> ; <b> && <c>" },
		{ "a <(b) >(c)", "!<a> ( <b> ( <c>" },
		{ "f() { a; }", "!<f> ) ~<{><a> ; <}>" },
		{ "if a; then b; fi", "<if><a> ; <then><b> ; <fi>" },
		{ "! a", "<!><a>" },
		{ "'if' a", "<if><a>" },
		{ "a *.c b? [c] {d,e} \\*", "<a>~<*.c>~<b?>~<[c]>~<*><*>" },
		{ "a '*.c' \"?\"", "<a><*.c><?>" },
		{ "a $'\\x62\\143\\n\\'' $\"d\"", "!<a>~<*\\x62\\143\\n\\ $\"d\">" },
		{ "a =b c=d", "<a>~<=b><c=d>" },
		{ "a \"b!c\"", "<a>~<b!c>" },
		{ "a\rb", "~<a\rb>" },
		{ "a 'b", "!<a><b>" },
		{ "a \"b", "!<a><b>" },
		{ "a $(b", "!<a>~<*> ( <b>" },
		{ "a `b", "!<a>~<*> ( <b>" },
		{ "a ${b", "!<a>~<*b>" },
		{ "a \\", "!<a>" },
		{ "a ) b", "!<a> ; <b>" },
		{ "a 3>x", "!<a>3>[x]" },
		{ "a $(b)/c `d`e", "!<a>~<*> ( <b> ) ~<*/c>~<*> ( <d> ) ~<*e>" },
		{ "a $(b `c \"$(d)\"`)", "!<a>~<*> ( <b>~<*> ( <c>~<*> ( <d> ) ~<*>" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		expect(CASES[i].text, strlen(CASES[i].text), false, CASES[i].want);
	}
	expect("a 'b\0c' d", 10, false, "!<a><b><d>");
	expect("a\0b", 3, false, "!<a> ; <b>");
	expect("a # b\0c", 7, false, "!<a>");
}

/* What stands in quotes: an escape is a new line or a blank there, and a "*" may be anything. */
static void test_nested(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *want;
	} CASES[] = {
		{ "a\\nb\\tc\\_d\\e", "<a> ; <b><c><de>" },
		{ "--split=a b c=d", "<--split><a><b><c=d>" },
		{ "* a", "~<*><a>" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		expect(CASES[i].text, strlen(CASES[i].text), true, CASES[i].want);
	}
}

static void test_assignments(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} CASES[] = { { "A=b", true },    { "_a1=", true }, { "a+=b", true }, { "a[0]=b", true },
		      { "1a=b", false },  { "=b", false },  { "a", false },   { "a-b=c", false },
		      { "./a=b", false }, { "a+b=", false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct hook_word w = { .text = (char *)CASES[i].text };
		assert_int_equal(hook_line_assigns(&w), CASES[i].want);
	}
}

/* What is quoted is read back as one plain word, whatever it is. */
static void test_quote_round_trip(void **state)
{
	static const char *const TEXTS[] = { "",  "a",    "a b",     "it's", "$HOME", "`x`",
		                             "*", "a\nb", "~",       "'",    "\"",    "\\",
		                             "#", "=a",   "a=b",     "if",   "{a,b}", "!",
		                             ";", "-x",   "\xff\xfe" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		struct hook_line line = { 0 };
		auto_buf q;
		buf_init(&q, 4096);
		buf_adds(&q, "x ");
		shell_quote(&q, TEXTS[i]);
		assert_int_equal(hook_line_read(&line, q.data, q.len, NAMES, false), 0);
		assert_false(line.odd);
		assert_int_equal(line.n_commands, 1);
		assert_int_equal(line.commands[0].n_words, 2);
		assert_true(line.commands[0].words[1].plain);
		assert_string_equal(line.commands[0].words[1].text, TEXTS[i]);
		hook_line_done(&line);
	}
}

/* `n` times `unit` behind `head`; 0 or -1 as the reader says. */
static int parse_many(const char *unit, size_t n, bool *ret_broken)
{
	struct hook_line line = { 0 };
	auto_buf text;

	buf_init(&text, (size_t)8 << 20);
	for (size_t i = 0; i < n; i++) {
		buf_adds(&text, unit);
	}
	int rc = hook_line_read(&line, text.data, text.len, NAMES, false);
	*ret_broken = line.odd;
	hook_line_done(&line);
	return rc;
}

static void test_caps(void **state)
{
	bool broken = false;

	(void)state;
	assert_int_equal(parse_many("a ", MAX_SHELL_WORDS, &broken), 0);
	assert_int_equal(parse_many("a ", MAX_SHELL_WORDS + 1, &broken), -1);
	assert_int_equal(parse_many("a;", MAX_SHELL_COMMANDS, &broken), 0);
	assert_int_equal(parse_many("a;", MAX_SHELL_COMMANDS + 1, &broken), -1);
	assert_int_equal(parse_many("a", MAX_SHELL_BYTES, &broken), 0);
	assert_int_equal(parse_many("a", MAX_SHELL_BYTES + 1, &broken), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),       cmocka_unit_test(test_nested),
		cmocka_unit_test(test_assignments), cmocka_unit_test(test_quote_round_trip),
		cmocka_unit_test(test_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
