/* test_yaml_doc.c - the strict YAML layer: what it accepts, what it refuses, and the place of each
 * error. */
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"
#include "diags_world.h"

#define auto_ynode AUTO(ynode_freep) struct ynode *

/* True if the list has an error at `where` whose text contains `word`. */
static bool has_error(const struct ssb_diags *d, const char *where, const char *word)
{
	for (size_t i = 0; i < ssb_diags_count(d); i++) {
		const struct ssb_diag *e = ssb_diags_get(d, i);
		if (e->severity == SSB_ERROR && strcmp(e->where, where) == 0 &&
		    strstr(e->text, word) != NULL) {
			return true;
		}
	}
	return false;
}

static void a_tree_with_positions(void **state)
{
	static const char text[] = "a: 1\n"
	                           "b:\n"
	                           "  - x\n"
	                           "  - 'null'\n"
	                           "  - {c: ~}\n";
	auto_diags d = ssb_diags_new();
	auto_ynode root = yaml_doc_parse("f", text, strlen(text), d);

	assert_non_null(root);
	assert_int_equal(ssb_diags_count(d), 0);
	assert_int_equal(root->kind, YNODE_MAP);
	struct ynode *a = ynode_get(root, "a");
	assert_string_equal(a->text, "1");
	assert_int_equal(a->line, 1);
	assert_int_equal(a->col, 4);
	assert_false(a->quoted);
	struct ynode *b = ynode_get(root, "b");
	assert_int_equal(b->kind, YNODE_SEQ);
	assert_int_equal(b->key_line, 2);
	assert_int_equal(b->key_col, 1);
	assert_string_equal(b->first->text, "x");
	assert_int_equal(b->first->line, 3);
	assert_int_equal(b->first->col, 5);
	struct ynode *quoted = b->first->next;
	assert_true(quoted->quoted);
	assert_false(ynode_is_null(quoted));
	struct ynode *map = quoted->next;
	assert_int_equal(map->kind, YNODE_MAP);
	assert_true(ynode_is_null(ynode_get(map, "c")));
	assert_null(map->next);
	assert_null(ynode_get(root, "c"));
	assert_null(ynode_get(a, "x")); /* the value is not a map */
	assert_null(ynode_get(NULL, "x"));
}

static void null_and_truth_values(void **state)
{
	static const char fine[] = "[~, null, Null, NULL, yes, 'yes', False, x, 'off', On]";
	static const char kinds[] = "nnnnb.b..b";
	auto_ynode root = yaml_doc_parse("f", fine, strlen(fine), NULL);

	assert_non_null(root);
	size_t i = 0;
	for (const struct ynode *n = root->first; n != NULL; n = n->next, i++) {
		char kind = ynode_is_null(n) ? 'n' : ynode_is_bool(n) ? 'b' : '.';
		assert_int_equal(kind, kinds[i]);
	}
	assert_int_equal(i, strlen(kinds));
}

#define BYTES(s) (s), sizeof(s) - 1

static const struct {
	const char *what;
	const char *bytes;
	size_t len;
} GOOD[] = {
	{ "nothing", BYTES("") },
	{ "a comment", BYTES("# x\n") },
	{ "a document start", BYTES("---\na: 1\n") },
	{ "a document end", BYTES("a: 1\n...\n") },
	{ "a byte order mark first", BYTES("\xef\xbb\xbf"
	                                   "a: 1\n") },
	{ "CRLF", BYTES("a: 1\r\nb:\r\n  - 2\r\n") },
	{ "UTF-8", BYTES("a: \xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xa7\n") },
	{ "a block text", BYTES("a: |\n  x\n  y\n") },
	{ "escapes of tab and line feed", BYTES("a: \"\\t\\n\"\n") },
	{ "a quoted <<", BYTES("'<<': 1\n") },
	{ "quoted & * !", BYTES("- '&a'\n- '*a'\n- '!a'\n") },
	{ "tabs between tokens", BYTES("a:\t1\n") },
};

static void good_documents(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		auto_diags d = ssb_diags_new();
		auto_ynode root = yaml_doc_parse("f", GOOD[i].bytes, GOOD[i].len, d);
		if (root == NULL || ssb_diags_count(d) != 0) {
			fail_msg("%s: refused: %s", GOOD[i].what, diags_dump(d));
		}
	}
}

static const struct {
	const char *what;
	const char *bytes;
	size_t len;
	const char *where;
	const char *word;
	bool tree; /* true: despite the error, the rest of the document is read */
} BAD[] = {
	{ "a duplicate key", BYTES("a: 1\nb: 2\na: 3\n"), "f:3:1", "duplicate key \"a\"", true },
	{ "a duplicate in quotes", BYTES("a: 1\n\"a\": 3\n"), "f:2:1", "duplicate key", true },
	{ "a nested duplicate", BYTES("x: {a: 1, a: 2}\n"), "f:1:11", "duplicate key", true },
	{ "an anchor", BYTES("a: &x 1\n"), "f:1:4", "anchors", true },
	{ "an anchor on a list", BYTES("a: &x [1]\n"), "f:1:4", "anchors", true },
	{ "an anchor on a map", BYTES("a: &x {b: 1}\n"), "f:1:4", "anchors", true },
	{ "an alias", BYTES("a: &x 1\nb: *x\n"), "f:2:4", "aliases", true },
	{ "an alias as key", BYTES("a: &x y\n*x : 1\n"), "f:2:1", "aliases", true },
	{ "an undefined alias", BYTES("b: *x\n"), "f:1:4", "aliases", true },
	{ "a tag", BYTES("a: !!str 1\n"), "f:1:4", "tags", true },
	{ "a local tag", BYTES("a: !x [1]\n"), "f:1:4", "tags", true },
	{ "a bare tag", BYTES("a: ! 1\n"), "f:1:4", "tags", true },
	{ "a tag on a map", BYTES("--- !!map\na: 1\n"), "f:1:5", "tags", true },
	{ "a merge key", BYTES("a: 1\n<<: {b: 1}\n"), "f:2:1", "merge keys", true },
	{ "a list as key", BYTES("? [a]\n: 1\n"), "f:1:3", "a key must be", true },
	{ "a second document", BYTES("a: 1\n---\nb: 1\n"), "f:2:1", "second document", true },
	{ "%YAML", BYTES("%YAML 1.1\n---\na: 1\n"), "f:1:1", "directives", true },
	{ "%TAG", BYTES("%TAG ! tag:x,2000:\n---\na: 1\n"), "f:1:1", "directives", true },
	{ "%YAML of the future", BYTES("%YAML 9.9\n---\na: 1\n"), "f:1:1", "not valid YAML",
	  false },
	{ "NUL", BYTES("a: 1\0\n"), "f:1:5", "control character U+0000", false },
	{ "escape", BYTES("a: \x1b[0m\n"), "f:1:4", "control character U+001B", false },
	{ "DEL", BYTES("a: \x7f\n"), "f:1:4", "control character U+007F", false },
	{ "C1 control", BYTES("a: \xc2\x9b\n"), "f:1:4", "control character U+009B", false },
	{ "next line",
	  BYTES("a: x\xc2\x85"
	        "b: 1\n"),
	  "f:1:5", "U+0085", false },
	{ "line separator",
	  BYTES("a: x\xe2\x80\xa8"
	        "b\n"),
	  "f:1:5", "line break U+2028", false },
	{ "a lone CR", BYTES("a: 1\rb: 2\n"), "f:1:5", "control character U+000D", false },
	{ "direction override", BYTES("a: \xe2\x80\xae\n"), "f:1:4", "direction", false },
	{ "a late byte order mark", BYTES("a: \xef\xbb\xbf\n"), "f:1:4", "byte order", false },
	{ "a bad byte", BYTES("\xc3\xa4: 1\nb: \xff\n"), "f:2:4", "invalid UTF-8: byte 0xff",
	  false },
	{ "overlong", BYTES("a: \xc0\xaf\n"), "f:1:4", "invalid UTF-8", false },
	{ "a surrogate", BYTES("a: \xed\xa0\x80\n"), "f:1:4", "invalid UTF-8", false },
	{ "cut short", BYTES("a: \xe2\x82"), "f:1:4", "invalid UTF-8", false },
	{ "UTF-16",
	  BYTES("\xff\xfe"
	        "a\0:\0"),
	  "f:1:1", "invalid UTF-8", false },
	{ "NUL by escape", BYTES("a: \"x\\0y\"\n"), "f:1:4", "U+0000", true },
	{ "ESC by escape", BYTES("a: \"\\x1b\"\n"), "f:1:4", "U+001B", true },
	{ "CR by escape", BYTES("a: \"\\r\"\n"), "f:1:4", "U+000D", true },
	{ "override by escape", BYTES("a: \"\\u202e\"\n"), "f:1:4", "U+202E", true },
	{ "a control in a key", BYTES("\"\\a\": 1\n"), "f:1:1", "U+0007", true },
	{ "an open quote", BYTES("a: 'x\nb: 1\n"), "f:3:1", "not valid YAML", false },
	{ "a tab as indent", BYTES("a:\n\tb: 1\n"), "f:2:1", "not valid YAML", false },
	{ "an open list", BYTES("a: [1, 2\nb: 1\n"), "f:2:2", "not valid YAML", false },
	{ "an unquoted wildcard", BYTES("a: *.example.com\n"), "f:1:5", "not valid YAML", false },
	{ "bad indentation", BYTES("a: 1\n  b: 2\n"), "f:2:4", "not valid YAML", false },
	{ "only a brace", BYTES("}"), "f:1:1", "not valid YAML", false },
};

static void bad_documents(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		auto_diags d = ssb_diags_new();
		auto_ynode root = yaml_doc_parse("f", BAD[i].bytes, BAD[i].len, d);
		if (!has_error(d, BAD[i].where, BAD[i].word)) {
			fail_msg("%s: no \"%s\" at %s in: %s", BAD[i].what, BAD[i].word,
			         BAD[i].where, diags_dump(d));
		}
		if ((root != NULL) != BAD[i].tree) {
			fail_msg("%s: tree is %p", BAD[i].what, (void *)root);
		}
	}
}

static void an_unquoted_wildcard_gets_its_remedy(void **state)
{
	auto_diags d = ssb_diags_new();
	static const char text[] = "domain: *.example.com\n";

	assert_null(yaml_doc_parse("f", text, strlen(text), d));
	assert_non_null(strstr(ssb_diags_get(d, 0)->remedy, "\"*.example.com\""));
}

static void all_violations_are_reported(void **state)
{
	static const char text[] = "a: &x 1\nb: !!str 2\na: 3\n<<: 4\nc: *x\n";
	auto_diags d = ssb_diags_new();
	auto_ynode root = yaml_doc_parse("f", text, strlen(text), d);

	assert_non_null(root);
	assert_int_equal(ssb_diags_count(d), 5);
	assert_true(ynode_get(root, "c")->bad);
	assert_false(ynode_get(root, "b")->bad);
	assert_null(ynode_get(root, "<<"));
	assert_string_equal(ynode_get(root, "a")->text, "1"); /* the first value is kept */
}

/* Returns a new text: `head`, then `count` times `unit`, then `tail`. */
static char *repeat(const char *head, const char *unit, size_t count, const char *tail)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_adds(&b, head);
	for (size_t i = 0; i < count; i++) {
		buf_adds(&b, unit);
	}
	buf_adds(&b, tail);
	char *s = buf_steal(&b);
	assert_non_null(s);
	return s;
}

static void check_cap(char *text, bool fits, const char *word)
{
	auto_free char *owned = text;
	auto_diags d = ssb_diags_new();
	auto_ynode root = yaml_doc_parse("f", owned, strlen(owned), d);

	if (fits && (root == NULL || ssb_diags_count(d) != 0)) {
		fail_msg("%s: refused at the cap: %s", word, diags_dump(d));
	}
	if (!fits && (!diag_has_errors(d) || strstr(ssb_diags_get(d, 0)->text, word) == NULL)) {
		fail_msg("%s: not refused past the cap: %s", word, diags_dump(d));
	}
}

static void caps_hold_exactly(void **state)
{
	check_cap(repeat("", "[", MAX_YAML_DEPTH, "]]]]]]]]]]]]]]]]"), true, "deeper");
	check_cap(repeat("", "[", MAX_YAML_DEPTH + 1, "]]]]]]]]]]]]]]]]]"), false, "deeper");
	check_cap(repeat("", "[", 100000, ""), false, "deeper");
	check_cap(repeat("", "{a: ", 10000, ""), false, "deeper");
	check_cap(repeat("", "- - ", 10000, ""), false, "deeper");
	check_cap(repeat("", "- x\n", MAX_YAML_NODES - 1, ""), true, "values");
	check_cap(repeat("", "- x\n", MAX_YAML_NODES, ""), false, "values");
	check_cap(repeat("a: '", "x", MAX_SCALAR_BYTES, "'"), true, "bytes");
	check_cap(repeat("a: '", "x", MAX_SCALAR_BYTES + 1, "'"), false, "bytes");
	check_cap(repeat("a: 1\n#", "x", MAX_YAML_BYTES - 6, ""), true, "larger");
	check_cap(repeat("a: 1\n#", "x", MAX_YAML_BYTES - 5, ""), false, "larger");
	check_cap(repeat("? ", "x", MAX_SCALAR_BYTES + 1, "\n: 1\n"), false, "bytes");
}

static void nothing_is_a_null(void **state)
{
	auto_diags d = ssb_diags_new();
	auto_ynode root = yaml_doc_parse("f", "", 0, d);

	assert_non_null(root);
	assert_true(ynode_is_null(root));
	assert_int_equal(root->line, 1);
}

static void positions_survive_long_file_names(void **state)
{
	char where[WHERE_SIZE];
	auto_free char *file = repeat("/", "long\xc3\xa4/", 60, "skillsandbox.yaml");

	report_where(where, sizeof(where), file, 12, 345);
	assert_true(strlen(where) < sizeof(where));
	assert_int_equal(strncmp(where, "...", 3), 0);
	assert_non_null(strstr(where, "/skillsandbox.yaml:12:345"));
	report_where(where, sizeof(where), "a.yaml", 1, 2);
	assert_string_equal(where, "a.yaml:1:2");
	report_where(where, sizeof(where), "a.yaml", 0, 0);
	assert_string_equal(where, "a.yaml");
}

static void quotes_are_safe_and_short(void **state)
{
	char out[QUOTE_SIZE];
	auto_free char *longest = repeat("", "\xe2\x82\xac", 100, "");

	assert_string_equal(report_quote(out, "abc"), "\"abc\"");
	assert_string_equal(report_quote(out, ""), "\"\"");
	assert_string_equal(report_quote(out, "a\n\x1b[1m\xff"), "\"a\\x0a\\x1b[1m\\xff\"");
	report_quote(out, longest);
	assert_true(strlen(out) < QUOTE_SIZE);
	assert_non_null(strstr(out, "\xe2\x82\xac...\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_with_positions),
		cmocka_unit_test(null_and_truth_values),
		cmocka_unit_test(good_documents),
		cmocka_unit_test(bad_documents),
		cmocka_unit_test(an_unquoted_wildcard_gets_its_remedy),
		cmocka_unit_test(all_violations_are_reported),
		cmocka_unit_test(caps_hold_exactly),
		cmocka_unit_test(nothing_is_a_null),
		cmocka_unit_test(positions_survive_long_file_names),
		cmocka_unit_test(quotes_are_safe_and_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
