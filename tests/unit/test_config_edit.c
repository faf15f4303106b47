/* test_config_edit.c - edits of an agent's configuration: everything else stays, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The command line is a program, not part of the library. */
#include "cli/config_edit.c"
#include "cli/toml_check.c"

static const char *const PATH[] = { "m", "s", NULL };

static void test_json(void **state)
{
	static const struct {
		const char *before;
		const char *value; /* NULL: taken out */
		const char *after; /* NULL: refused */
	} CASES[] = {
		{ NULL, "1", "{\n  \"m\": {\n    \"s\": 1\n  }\n}\n" },
		{ " \n", "1", "{\n  \"m\": {\n    \"s\": 1\n  }\n}\n" },
		{ "{}", "1", "{\n  \"m\": {\n    \"s\": 1\n  }\n}" },
		{ "{\"a\":[{\"m\":2}]}", "1",
		  "{\"a\":[{\"m\":2}],\n  \"m\": {\n    \"s\": 1\n  }}" },
		{ "{\"m\": {}}", "1", "{\"m\": {\n    \"s\": 1\n  }}" },
		{ "{\"m\": {\"t\": \"}\\\"\"}, \"z\": 1}\n", "1",
		  "{\"m\": {\"t\": \"}\\\"\",\n    \"s\": 1}, \"z\": 1}\n" },
		{ "{\"m\":{\"s\":{\"x\":[1,2]},\"t\":3}}", "1", "{\"m\":{\"s\":1,\"t\":3}}" },
		{ "{\"m\":{\"s\":0}}", "{\n}", "{\"m\":{\"s\":{\n    }}}" },
		{ "{\"m\":{\"s\":1,\"t\":3}}", NULL, "{\"m\":{\"t\":3}}" },
		{ "{\"m\":{\"t\":3, \"s\":1}}", NULL, "{\"m\":{\"t\":3}}" },
		{ "{\"m\":{ \"s\":1 }}", NULL, "{\"m\":{}}" },
		{ "{\"m\":{\"t\":3}}", NULL, "{\"m\":{\"t\":3}}" },
		{ "{\"a\":1}", NULL, "{\"a\":1}" },
		{ NULL, NULL, "" },
		{ "{ // comment\n}", "1", NULL },
		{ "{\"a\":1,}", "1", NULL },
		{ "{a:1}", "1", NULL },
		{ "[]", "1", NULL },
		{ "{\"m\":[]}", "1", NULL },
		{ "{\"m\":3}", NULL, NULL },
		{ "{\"\\u006d\":{}}", "1", NULL }, /* the same name, written otherwise */
		{ "{", "1", NULL },
		{ "{\"a\":1}{}", "1", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_error err = { 0 };
		auto_buf out;
		buf_init(&out, 4096);
		const char *b = CASES[i].before;
		int rc = config_edit_json(b, b != NULL ? strlen(b) : 0, PATH, CASES[i].value, &out,
		                          &err);
		if (CASES[i].after == NULL) {
			assert_int_equal(rc, -1);
			assert_int_not_equal(err.code, SSB_OK);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_string_equal(out.data, CASES[i].after);
	}
}

#define MARK "# mark"
#define OURS "# mark\n[a.b]\nx = 1\n"

static void test_toml(void **state)
{
	static const struct {
		const char *before;
		const char *body;
		const char *after; /* NULL: refused */
	} CASES[] = {
		{ NULL, "x = 1\n", OURS },
		{ "k = 1\n", "x = 1\n", "k = 1\n\n" OURS },
		{ "k = 1", "x = 1\n", "k = 1\n\n" OURS },
		{ OURS, "x = 1\n", OURS },
		{ "[a.b]\nx = 1\n", "x = 1\n", "[a.b]\nx = 1\n" },
		{ OURS, "x = 2\n", "# mark\n[a.b]\nx = 2\n" },
		{ "k = 1\n\n" OURS "\n# c\n[d]\n", "x = 2\n",
		  "k = 1\n\n# mark\n[a.b]\nx = 2\n\n# c\n[d]\n" },
		{ "k = 1\n\n" OURS, NULL, "k = 1\n" },
		{ OURS, NULL, "" },
		{ OURS "[d]\n", NULL, "[d]\n" },
		{ "k = 1\n", NULL, "k = 1\n" },
		{ "[a.c]\n", "x = 1\n", "[a.c]\n\n" OURS },
		{ "[a.b]\nx = 3\n", "x = 1\n", NULL }, /* another's */
		{ "[a.b]\nx = 1\n", NULL, NULL },
		{ "[ a.b ]\n", "x = 1\n", NULL },
		{ "[a.\"b\"]\n", "x = 1\n", NULL },
		{ OURS "[a.b.env]\n", "x = 2\n", NULL },
		{ "a.b.x = 1\n", "x = 1\n", NULL },
		{ "a = { b = {} }\n", "x = 1\n", NULL },
		{ "[a]\nb = {}\n", "x = 1\n", NULL },
		{ "[a]\n\"b\" = {}\n", "x = 1\n", NULL },
		{ "k = \"\"\"\n[a.b]\n\"\"\"\n", "x = 1\n", NULL },
		{ "# mark\n[a.b]\nx = [\n[1],\n]\n", "x = 1\n", NULL },
		{ "# mark\n[a.b]\nx = [\n[1],\n]\n", NULL, NULL },
		{ "k = [\n# mark\n[1.5],\n]\n", "x = 1\n", "k = [\n# mark\n[1.5],\n]\n\n" OURS },
		{ "k = \"\n", "x = 1\n", NULL },
		{ OURS "k = [\n", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_error err = { 0 };
		auto_buf out;
		buf_init(&out, 4096);
		const char *b = CASES[i].before;
		int rc = config_edit_toml(b, b != NULL ? strlen(b) : 0, "a.b", MARK, CASES[i].body,
		                          &out, &err);
		if ((rc == 0) != (CASES[i].after != NULL)) {
			print_error("case %zu\n", i);
		}
		if (CASES[i].after == NULL) {
			assert_int_equal(rc, -1);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_string_equal(out.data != NULL ? out.data : "", CASES[i].after);
	}
}

static void test_toml_that_is_none(void **state)
{
	static const struct {
		const char *text;
		unsigned line; /* 0: it is TOML */
	} CASES[] = {
		{ "", 0 },
		{ "# only a comment", 0 },
		{ "\xef\xbb\xbfk = 1\r\n[t . \"u v\" .'w'] # c\r\n[[a]]\n", 0 },
		{ "a.'b'.\"c\" = [\n 1, # one\n [true], {x = 'y', z.z = []},\n]\n", 0 },
		{ "a = \"\"\"\n[b\n\\\"\\\n  \"\" c\"\"\"\"\"\nb = '''\n'[''''\n", 0 },
		{ "a = \"\\u00e9\\U0001f600\\x41\\\\\"\nb = 'c:\\d'\n", 0 },
		{ "a = 1979-05-27 07:32:00\nb = -0.5e3\nc = +inf\nd = 0xff\n", 0 },
		{ "a = {\n  b = 1, # c\n}\n", 0 }, /* of TOML 1.1 */
		{ "k = 1\na = \"open\nb = 2\n", 2 },
		{ "a = 'open", 1 },
		{ "a = \"closed\\\"\n", 1 },
		{ "k = 1\n\na = \"\"\"\nx\n\"\"\n", 3 },
		{ "a = '''\nx\n''", 1 },
		{ "a = \"\\q\"\n", 1 },
		{ "a = \"\\u12g4\"\n", 1 },
		{ "a = \"\"\"\n\\ x\"\"\"\n", 2 },
		{ "k = 1\n[open\nx = 1\n", 2 },
		{ "[[open]\n", 1 },
		{ "[]\n", 1 },
		{ "[a.]\n", 1 },
		{ "[a] b = 1\n", 1 },
		{ "k = 1\na = [1, 2\n[t]\n", 2 },
		{ "a = [\n1", 1 },
		{ "a = [1 2]\n", 1 },
		{ "a = [,]\n", 1 },
		{ "a = [1}\n", 1 },
		{ "a = {b = 1\n", 1 },
		{ "a = {b}\n", 1 },
		{ "k = 1\nno words\n", 2 },
		{ "a = text\n", 1 },
		{ "a = -true\n", 1 },
		{ "a =\n", 1 },
		{ "= 1\n", 1 },
		{ "a b = 1\n", 1 },
		{ "\"\"\"a\"\"\" = 1\n", 1 },
		{ "a = 1 2\n", 1 },
		{ "k = 1\n# \x01\n", 2 },
		{ "k = 1\n# \xff\n", 2 },
		{ "a = 1\rb = 2\n", 1 },
	};
	unsigned line = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		line = 0;
		const char *why = toml_check(CASES[i].text, strlen(CASES[i].text), &line);
		if ((why != NULL) != (CASES[i].line != 0) || line != CASES[i].line) {
			fail_msg("%s\nline %u, not %u: %s", CASES[i].text, line, CASES[i].line,
			         why != NULL ? why : "fine");
		}
	}
	assert_non_null(toml_check("a = 1\0\n", 7, &line));
}

static void test_toml_depth(void **state)
{
	(void)state;
	for (size_t past = 0; past < 2; past++) {
		auto_buf text;
		unsigned line = 0;
		buf_init(&text, 4096);
		buf_adds(&text, "a = ");
		for (size_t i = 0; i < MAX_CONFIG_DEPTH + past; i++) {
			buf_adds(&text, i % 2 == 0 ? "[" : "{b = ");
		}
		buf_adds(&text, "1");
		for (size_t i = MAX_CONFIG_DEPTH + past; i > 0; i--) {
			buf_addc(&text, i % 2 == 1 ? ']' : '}');
		}
		const char *why = toml_check(text.data, text.len, &line);
		assert_int_equal(why != NULL, past);
	}
}

static void test_diff(void **state)
{
	static const struct {
		const char *before, *after, *want;
	} CASES[] = {
		{ "", "a\n", "+a\n" },
		{ "a\n", "", "-a\n" },
		{ "a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n", " b\n-c\n+X\n d\n" },
		{ "a\n", "a\nb\n", " a\n+b\n" },
		{ "{}", "{\n}", "-{}\n+{\n+}\n" },
		{ "a\na\n", "a\n", " a\n-a\n" },
		{ "a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "-a\n+A\n b\n ...\n d\n-e\n+E\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf out;
		buf_init(&out, 4096);
		config_edit_diff(CASES[i].before, CASES[i].after, &out);
		assert_string_equal(out.data, CASES[i].want);
	}
}

/* More differences than line_diff() compares: every line is shown, and none is left out. */
static void test_long_diff(void **state)
{
	auto_buf text, out;
	size_t lines = 0;

	(void)state;
	buf_init(&text, 1 << 16);
	buf_init(&out, 1 << 16);
	for (int i = 0; i <= MAX_DIFF_EDITS; i++) {
		buf_addf(&text, "%d\n", i);
	}
	config_edit_diff("x\n", text.data, &out);
	assert_memory_equal(out.data, "-x\n+0\n+1\n", 9);
	for (const char *c = out.data; (c = strchr(c, '\n')) != NULL; c++) {
		lines++;
	}
	assert_int_equal(lines, MAX_DIFF_EDITS + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_toml),
		cmocka_unit_test(test_toml_that_is_none),
		cmocka_unit_test(test_toml_depth),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_long_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
