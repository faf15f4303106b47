/* test_config_edit.c - edits of an agent's configuration file: every other member is kept. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "base/limits.h"

/* Included as source: the code of the command line is not in the library. */
#include "cli/config_edit.c"

static const char *const PATH[] = { "m", "s", NULL };

/* Returns a copy of the text in which each ' is replaced by ". */
static char *with_quotes(const char *text)
{
	char *s = strdup(text);

	assert_non_null(s);
	for (char *c = s; (c = strchr(c, '\'')) != NULL;) {
		*c = '"';
	}
	return s;
}

/* Compares two JSON texts. The layout does not matter; the order of members and the spelling of
 * numbers do. */
static void assert_same_json(const char *a, const char *b)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	auto_buf ours, theirs;
	const char *why = NULL;
	struct json j;

	buf_init(&ours, 4096);
	buf_init(&theirs, 4096);
	assert_int_equal(json_read(&doc, a, strlen(a), &why), 0);
	json_init(&j, &ours, false);
	json_copy(&j, &doc, json_top(&doc));
	assert_int_equal(json_read(&doc, b, strlen(b), &why), 0);
	json_init(&j, &theirs, false);
	json_copy(&j, &doc, json_top(&doc));
	assert_string_equal(ours.data, theirs.data);
}

static int edit(const char *text, const char *value, struct buf *out)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct ssb_error err = { 0 };
	const char *why = NULL;

	buf_init(out, 4096);
	if (text != NULL) {
		assert_int_equal(json_read(&doc, text, strlen(text), &why), 0);
	}
	int rc = config_edit_set(&doc, PATH, value, out, &err);
	assert_int_equal(rc != 0, err.code != SSB_OK);
	return rc;
}

static void test_set(void **state)
{
	static const struct {
		const char *before;
		const char *value; /* NULL: remove the member */
		const char *after; /* the text after the edit; NULL: the edit is refused */
	} CASES[] = {
		{ NULL, "1", "{'m': {'s': 1}}" },
		{ "{}", "1", "{'m': {'s': 1}}" },
		{ "{'a':[{'m':2}]}", "1", "{'a': [{'m': 2}], 'm': {'s': 1}}" },
		{ "{'m': {'t': '}\\''}, 'z': 1.50}", "1",
		  "{'m': {'t': '}\\'', 's': 1}, 'z': 1.50}" },
		{ "{'m':{'s':{'x':[1,2]},'t':3}}", "1", "{'m': {'s': 1, 't': 3}}" },
		{ "{'m':{'s':0}}", "{'x': [1]}", "{'m': {'s': {'x': [1]}}}" },
		{ "{'\\u006d':{}}", "1", "{'m': {'s': 1}}" },
		{ "{'m':{'s':1,'t':3}}", NULL, "{'m': {'t': 3}}" },
		{ "{'m':{'t':3, 's':1}}", NULL, "{'m': {'t': 3}}" },
		{ "{'m':{ 's':1 }}", NULL, "{'m': {}}" },
		{ "{'m':{'t':3}}", NULL, "{'m': {'t': 3}}" },
		{ "{'a':null}", NULL, "{'a': null}" },
		{ "[]", "1", NULL },
		{ "3", "1", NULL },
		{ "{'m':[]}", "1", NULL },
		{ "{'m':3}", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_free char *before =
		        CASES[i].before != NULL ? with_quotes(CASES[i].before) : NULL;
		auto_free char *value = CASES[i].value != NULL ? with_quotes(CASES[i].value) : NULL;
		auto_buf out;
		int rc = edit(before, value, &out);
		if ((rc == 0) != (CASES[i].after != NULL)) {
			fail_msg("%s: %d", before, rc);
		}
		if (rc == 0) {
			auto_free char *after = with_quotes(CASES[i].after);
			assert_same_json(out.data, after);
		}
	}
}

static void test_layout(void **state)
{
	auto_buf out;

	assert_int_equal(edit("{\"a\": {}}", "[\"x\"]", &out), 0);
	assert_string_equal(out.data, "{\n  \"a\": {},\n  \"m\": {\n    \"s\": [\"x\"]\n  }\n}\n");
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

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf out;
		buf_init(&out, 4096);
		config_edit_diff(CASES[i].before, CASES[i].after, &out);
		assert_string_equal(out.data, CASES[i].want);
	}
}

/* If two texts have more differences than line_diff() can handle, the diff shows all lines of
 * both. */
static void test_long_diff(void **state)
{
	auto_buf text, out;
	size_t lines = 0;

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
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_long_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
