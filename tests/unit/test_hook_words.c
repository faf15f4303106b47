/* The reader of shell command lines: what each would start, word by word. The
 * golden form: words in <>, ~<> where one is not plain, joins between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The command line is a program, not part of the library. */
#include "base/shell_quote.h"
#include "cli/shell_line.c"
#include "cli/shell_words.c"

static const struct shell_name NAMES[] = {
	{ "HOME", "/home/me", false }, { "ODD", "a b", false }, { "NONE", NULL, false },
	{ "NEAR", "/bin", true },      { NULL, NULL, false },
};

static const char *const JOINS[] = { "", " && ", " || ", " ; ", " | ", " & ", " ( " };

static void show(const struct shell_line *line, struct buf *out)
{
	buf_adds(out, line->broken ? "!" : "");
	for (size_t i = 0; i < line->n_commands; i++) {
		const struct shell_command *c = &line->commands[i];
		buf_adds(out, JOINS[c->join]);
		for (size_t k = 0; k < c->n_words; k++) {
			buf_addf(out, "%s<%s>", c->words[k].plain ? "" : "~", c->words[k].text);
		}
		for (size_t k = 0; k < c->n_redirects; k++) {
			buf_addf(out, "%s[%s]", c->redirects[k].op, c->redirects[k].target.text);
			if (c->redirects[k].body != NULL) {
				buf_addf(out, "=%s", c->redirects[k].body);
			}
		}
	}
	buf_adds(out, line->beside ? "&" : "");
}

static void expect(const char *text, size_t len, const char *want)
{
	struct shell_line line = { 0 };
	auto_buf got;

	buf_init(&got, 65536);
	assert_int_equal(shell_parse(text, len, NAMES, &line), 0);
	show(&line, &got);
	if (strcmp(got.data, want) != 0) {
		print_error("of: %s\n", text);
	}
	assert_string_equal(got.data, want);
	shell_done(&line);
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
		{ "a && b || c; d | e |& f & g", "<a> && <b> || <c> ; <d> | <e> | <f> & <g>&" },
		{ "a\nb\n\n# c\nd # e\nf", "<a> ; <b> ; <d> ; <f>" },
		{ "a &&\n b", "<a> && <b>" },
		{ "a#b", "<a#b>" },
		{ "a >x 2>>y <z 2>&1 &>w", "<a>>[x]2>>[y]<[z]2>&[1]&>[w]" },
		{ "a 2 >x", "<a><2>>[x]" },
		{ "a2>x", "<a2>>[x]" },
		{ "12345>x a", "!<12345><a>>[x]" },
		{ "a <<E\nb\nE", "<a><<[E]=b\n" },
		{ "a <<E\n$b\nE", "<a><<[E]=$b\n" },
		{ "a <<E\n$(b)\nE", "!<a><<[E] ( <b> ; ~<*> ; <E>" },
		{ "a <<'E'\n$b\nE\nc", "<a><<[E]=$b\n ; <c>" },
		{ "a <<\\E >f; b <<-F\n`x`\nE\n\tG\n\tF\nc",
		  "<a><<[E]=`x`\n>[f] ; <b><<-[F]=\tG\n ; <c>" },
		{ "a \"$(b <<'E'\nit's\nE\n)\" c", " ( <b><<[E]=it's\n<a>~<*><c>" },
		{ "a <<E\nb", "!<a><<[E] ; <b>" },
		{ "a <<E 'x\nE\n'", "!<a><x\nE\n><<[E]" },
		{ "a <<E \"'\" '\nE\n'", "!<a><'><\nE\n><<[E]=" },
		{ "a <<$X\nb\n*\n", "!<a><<[*] ; <b> ; ~<*>" },
		{ "a <<<b", "<a><<<[b]" },
		{ "a >", "!<a>" },
		{ "~/x", "</home/me/x>" },
		{ "a ~ ~/b x~ ~you", "<a></home/me></home/me/b><x~>~<*>" },
		{ "a ~+/b ~-/c ~1 $NEAR", "<a>~<*/b>~<*/c>~<*>~</bin>" },
		{ "$HOME/x \"${HOME}/y\" '$HOME'", "</home/me/x></home/me/y><$HOME>" },
		{ "$NONE/x $OTHER \"$ODD\" $ODD", "~<*/x>~<*><a b>~<*>" },
		{ "a $ $1 $? $@x", "<a><$>~<*>~<*>~<*x>" },
		{ "a ${X:-y}b", "!<a>~<*b>" },
		{ "a $(b c) d", " ( <b><c><a>~<*><d>" },
		{ "a \"$(b 'c)')\" d", " ( <b><c)><a>~<*><d>" },
		{ "a `b c` d", "! ( <b><c><a>~<*><d>" },
		{ "a $((1+1))", "! ( <1+1><a>~<*>" },
		{ "(a; b) && c", " ( <a> ; <b> && <c>" },
		{ "a <(b) >(c)", " ( <b> ( <c><a>~<*>~<*>" },
		{ "f() { a; }", "!<f> ( ~<{><a> ; <}>" },
		{ "if a; then b; fi", "!<if><a> ; <then><b> ; <fi>" },
		{ "! a", "!<!><a>" },
		{ "'if' a", "<if><a>" },
		{ "a *.c b? [c] {d,e} \\*", "<a>~<*.c>~<b?>~<[c]>~<{d,e}><*>" },
		{ "a '*.c' \"?\"", "<a><*.c><?>" },
		{ "a $'\\x62\\143\\n\\'' $\"d\"", "<a>~<bc\n'>~<d>" },
		{ "a =b c=d", "<a>~<=b><c=d>" },
		{ "a \"b!c\"", "<a>~<b!c>" },
		{ "a\rb", "~<a\rb>" },
		{ "a 'b", "!<a><b>" },
		{ "a \"b", "!<a><b>" },
		{ "a $(b", "! ( <b><a>~<*>" },
		{ "a `b", "! ( <b><a>~<*>" },
		{ "a ${b", "!<a>~<*>" },
		{ "a \\", "!<a><>" },
		{ "a ) b", "!<a> ; <b>" },
		{ "a $(b `c \"$(d)\"`)", "! ( <d> ( <c>~<*> ( <b>~<*><a>~<*>" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		expect(CASES[i].text, strlen(CASES[i].text), CASES[i].want);
	}
	expect("a 'b\0c' d", 10, "!<a><b><d>"); /* not for rewriting: broken */
	expect("a\0b", 3, "!<a> ; <b>");
}

/* What was quoted stays what it is for glob(3). */
static void test_patterns(void **state)
{
	struct shell_line line = { 0 };

	(void)state;
	assert_int_equal(shell_parse("x '*'*$HOME[\"]\"", 15, NAMES, &line), 0);
	assert_string_equal(line.commands[0].words[1].pattern, "\\**/home/me[\\]");
	shell_done(&line);
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
		struct shell_word w = { .text = (char *)CASES[i].text };
		assert_int_equal(shell_assigns(&w), CASES[i].want);
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
		struct shell_line line = { 0 };
		auto_buf q;
		buf_init(&q, 4096);
		buf_adds(&q, "x ");
		shell_quote(&q, TEXTS[i]);
		assert_int_equal(shell_parse(q.data, q.len, NAMES, &line), 0);
		assert_false(line.broken);
		assert_int_equal(line.n_commands, 1);
		assert_int_equal(line.commands[0].n_words, 2);
		assert_true(line.commands[0].words[1].plain);
		assert_string_equal(line.commands[0].words[1].text, TEXTS[i]);
		shell_done(&line);
	}
}

/* `n` times `unit` behind `head`; 0 or -1 as the reader says. */
static int parse_many(const char *unit, size_t n, bool *ret_broken)
{
	struct shell_line line = { 0 };
	auto_buf text;

	buf_init(&text, (size_t)8 << 20);
	for (size_t i = 0; i < n; i++) {
		buf_adds(&text, unit);
	}
	int rc = shell_parse(text.data, text.len, NAMES, &line);
	*ret_broken = line.broken;
	shell_done(&line);
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
	/* Deeper than anyone goes is not followed, and said. */
	assert_int_equal(parse_many("$(a ", 100000 / 4, &broken), 0);
	assert_true(broken);
}

static void test_depth(void **state)
{
	static const struct {
		size_t deep;
		bool broken;
	} CASES[] = { { MAX_SHELL_DEPTH, false }, { MAX_SHELL_DEPTH + 1, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct shell_line line = { 0 };
		auto_buf text;
		buf_init(&text, 4096);
		for (size_t k = 0; k < CASES[i].deep; k++) {
			buf_adds(&text, "$(a ");
		}
		for (size_t k = 0; k < CASES[i].deep; k++) {
			buf_addc(&text, ')');
		}
		assert_int_equal(shell_parse(text.data, text.len, NAMES, &line), 0);
		assert_int_equal(line.broken, CASES[i].broken);
		shell_done(&line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),       cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_assignments), cmocka_unit_test(test_quote_round_trip),
		cmocka_unit_test(test_caps),        cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
