/* test_json_read.c - the strict JSON reader: what it accepts, what it refuses, and its caps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"

static int read_text(struct json_doc *doc, const char *text)
{
	const char *why = NULL;
	int rc = json_read(doc, text, strlen(text), &why);

	assert_true(rc == 0 || (rc == -1 && why != NULL && json_top(doc) == NULL));
	return rc;
}

static void test_takes(void **state)
{
	static const char *const good[] = { "null",
		                            " true ",
		                            "false",
		                            "0",
		                            "-0",
		                            "12",
		                            "-1.5e+10",
		                            "1E5",
		                            "\"\"",
		                            "[]",
		                            "{}",
		                            "[1,2 , [3]]",
		                            "{\"a\":{\"b\":[]},\"c\":null}",
		                            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
		                            "\"\\u0041\\ud83d\\ude00\\udcff\"",
		                            "\"\xc3\xa9\"",
		                            "{\"\":1}" };
	AUTO(json_doc_done) struct json_doc doc = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (read_text(&doc, good[i]) != 0) {
			fail_msg("refused: %s", good[i]);
		}
	}
}

static void test_refuses(void **state)
{
	static const char *const bad[] = { "",
		                           " ",
		                           "nul",
		                           "truee",
		                           "01",
		                           "-",
		                           "+1",
		                           "1.",
		                           ".5",
		                           "1e",
		                           "0x1",
		                           "NaN",
		                           "'a'",
		                           "\"a",
		                           "\"\\",
		                           "\"\\x41\"",
		                           "\"\\u12\"",
		                           "\"\\u12g4\"",
		                           "\"\\ud800\"",
		                           "\"\\ud83d\\u0041\"",
		                           "\"\\udc00\"",
		                           "\"\\udc7f\"",
		                           "\"\x01\"",
		                           "\"\x7f\"",
		                           "\"\xff\"",
		                           "\"\xc0\xaf\"",
		                           "\"\xed\xa0\x80\"",
		                           "[1,]",
		                           "[,1]",
		                           "[1 2]",
		                           "[",
		                           "]",
		                           "{",
		                           "{\"a\"}",
		                           "{\"a\":}",
		                           "{\"a\":1,}",
		                           "{a:1}",
		                           "{\"a\":1,\"a\":2}",
		                           "{\"a\\u0000\":1}",
		                           "1 2",
		                           "{}x",
		                           "// a",
		                           "[1]]" };
	AUTO(json_doc_done) struct json_doc doc = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (read_text(&doc, bad[i]) == 0) {
			fail_msg("taken: %s", bad[i]);
		}
	}
}

/* A key that occurs twice is refused, wherever it is and however many other keys there are. */
static void test_keys_twice(void **state)
{
	static const int at[] = { 0, 1, 500, MAX_JSON_MEMBERS - 2, -1 };
	AUTO(json_doc_done) struct json_doc doc = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		auto_buf text = BUF(MAX_RECORD_LINE);

		for (int k = 0; k < MAX_JSON_MEMBERS - 1; k++) {
			buf_addf(&text, "%s\"k%d\":{\"k%d\":1}", k == 0 ? "{" : ",", k, k);
		}
		buf_addf(&text, ",\"k%d\":1}", at[i]);
		assert_int_equal(read_text(&doc, text.data), at[i] < 0 ? 0 : -1);
	}
}

static void test_finds(void **state)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };

	assert_int_equal(read_text(&doc, "{\"n\":-7,\"s\":\"a\\u0000b\",\"l\":[1,2],\"t\":true,"
	                                 "\"big\":9223372036854775808,\"f\":1.5}"),
	                 0);
	const struct json_node *top = json_top(&doc);
	const struct json_node *s = json_member(&doc, top, "s");
	const struct json_node *l = json_member(&doc, top, "l");
	assert_int_equal(json_integer(json_member(&doc, top, "n"), 0), -7);
	assert_int_equal(json_integer(json_member(&doc, top, "big"), 5), 5);
	assert_int_equal(json_integer(json_member(&doc, top, "f"), 5), 5);
	assert_int_equal(json_integer(s, 5), 5);
	assert_int_equal(s->len, 3);
	assert_memory_equal(s->str, "a\0b", 4);
	assert_null(json_string(l, NULL));
	assert_int_equal(l->n, 2);
	assert_int_equal(json_integer(json_next(&doc, json_first(&doc, l)), 0), 2);
	assert_null(json_next(&doc, json_next(&doc, json_first(&doc, l))));
	assert_true(json_is(json_member(&doc, top, "t"), JSON_TRUE));
	assert_null(json_member(&doc, top, "none"));
	assert_null(json_member(&doc, l, "n"));
	assert_null(json_first(&doc, NULL));
	assert_false(json_is(NULL, JSON_NULL));
}

/* Any bytes that the writer has written are read back unchanged. */
static void test_round(void **state)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	char bytes[256];
	const char *why = NULL;
	auto_buf out;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (char)(255 - i);
	}
	buf_init(&out, 1 << 20);
	struct json j = JSON_TO(&out, false);
	json_strn(&j, bytes, sizeof(bytes));
	assert_int_equal(json_read(&doc, out.data, out.len, &why), 0);
	assert_int_equal(json_top(&doc)->len, sizeof(bytes));
	assert_memory_equal(json_top(&doc)->str, bytes, sizeof(bytes));
}

static int read_many(const char *open, const char *item, size_t n, const char *close)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	auto_buf out = BUF(16 << 20);

	buf_adds(&out, open);
	for (size_t i = 0; i < n; i++) {
		buf_addf(&out, item, i > 0 ? "," : "", (unsigned)i);
	}
	buf_adds(&out, close);
	return read_text(&doc, out.data);
}

static int read_deep(size_t n)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	auto_buf out = BUF(1 << 20);

	for (size_t i = 0; i < 2 * n; i++) {
		buf_addc(&out, i < n ? '[' : ']');
	}
	return read_text(&doc, out.data);
}

static void test_caps(void **state)
{
	assert_int_equal(read_deep(MAX_JSON_DEPTH), 0);
	assert_int_equal(read_deep(MAX_JSON_DEPTH + 1), -1);
	assert_int_equal(read_many("{", "%s\"%u\":1", MAX_JSON_MEMBERS, "}"), 0);
	assert_int_equal(read_many("{", "%s\"%u\":1", MAX_JSON_MEMBERS + 1, "}"), -1);
	assert_int_equal(read_many("[", "%s%u", MAX_JSON_NODES - 1, "]"), 0);
	assert_int_equal(read_many("[", "%s%u", MAX_JSON_NODES, "]"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes),      cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_keys_twice), cmocka_unit_test(test_finds),
		cmocka_unit_test(test_round),      cmocka_unit_test(test_caps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
