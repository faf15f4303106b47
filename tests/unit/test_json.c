/* test_json.c - the JSON writer and the UTF-8 decoder below it. */
#include <stdlib.h>

#include "unit.h"
#include "base/json.h"
#include "base/utf8.h"

struct text_case {
	const char *in;
	size_t len;
	const char *out;
};
#define CASE(in, out)                                                                              \
	{                                                                                          \
		in, sizeof(in) - 1, out                                                            \
	}

static void test_strings(void **state)
{
	static const struct text_case cases[] = {
		CASE("plain", "\"plain\""),
		CASE("", "\"\""),
		CASE("q\"b\\s/", "\"q\\\"b\\\\s/\""),
		CASE("\n\t\r\x1b", "\"\\n\\t\\u000d\\u001b\""),
		CASE("a\0b", "\"a\\u0000b\""),
		CASE("\x7f\xc2\x85", "\"\\u007f\\u0085\""),
		CASE("\xe2\x80\xa8", "\"\\u2028\""),
		CASE("gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""),
		CASE("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""),
		CASE("\xff", "\"\\udcff\""),
		CASE("\xc0\x80", "\"\\udcc0\\udc80\""),            /* overlong */
		CASE("\xed\xa0\x80", "\"\\udced\\udca0\\udc80\""), /* surrogate */
		CASE("\xe2\x82", "\"\\udce2\\udc82\""),            /* cut short */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf b = BUF(4096);
		struct json j = JSON_TO(&b, false);

		json_strn(&j, cases[i].in, cases[i].len);
		assert_string_equal(b.data, cases[i].out);
		assert_int_equal(json_text_size(cases[i].in, cases[i].len), b.len - 2);
	}
}

static void write_sample(struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "s", NULL);
	json_kint(j, "i", INT64_MIN);
	json_kuint(j, "u", UINT64_MAX);
	json_kopen(j, "a", '[');
	json_bool(j, true);
	json_open(j, '[');
	json_close(j, ']');
	json_raw(j, "{\"x\":1}", 7);
	json_null(j);
	json_close(j, ']');
	json_kbool(j, "b", false);
	json_close(j, '}');
}

static void test_structure(void **state)
{
	auto_buf b = BUF(4096);
	struct json j = JSON_TO(&b, false);

	write_sample(&j);
	assert_string_equal(b.data, "{\"s\":null,\"i\":-9223372036854775808,"
	                            "\"u\":18446744073709551615,"
	                            "\"a\":[true,[],{\"x\":1},null],\"b\":false}");
}

static void test_pretty(void **state)
{
	auto_buf b = BUF(4096);
	struct json j = JSON_TO(&b, true);

	json_open(&j, '{');
	json_kint(&j, "a", 1);
	json_kopen(&j, "b", '[');
	json_int(&j, 2);
	json_close(&j, ']');
	json_close(&j, '}');
	assert_string_equal(b.data, "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}");
}

static void test_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t len;
		size_t n;
		uint32_t cp;
	} cases[] = {
		{ "a", 1, 1, 'a' },
		{ "\xc2\x80", 2, 2, 0x80 },
		{ "\xc1\xbf", 2, 0, 0 },
		{ "\xe0\xa0\x80", 3, 3, 0x800 },
		{ "\xe0\x9f\xbf", 3, 0, 0 },
		{ "\xed\x9f\xbf", 3, 3, 0xd7ff },
		{ "\xed\xbf\xbf", 3, 0, 0 },
		{ "\xf0\x90\x80\x80", 4, 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
		{ "\xf4\x90\x80\x80", 4, 0, 0 },
		{ "\xf0\x90\x80\x80", 3, 0, 0 },
		{ "\x80", 1, 0, 0 },
		{ "\xc2\x41", 2, 0, 0 },
		{ "\xff", 1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t cp = 0;
		assert_int_equal(utf8_decode(cases[i].s, cases[i].len, &cp), cases[i].n);
		assert_int_equal(cp, cases[i].cp);
	}
}

static void test_utf8_cut(void **state)
{
	static const struct {
		const char *s;
		size_t max, left;
	} cases[] = {
		{ "", 0, 0 },
		{ "abc", 3, 3 },
		{ "abc", 2, 2 },
		{ "abc", 0, 0 },
		{ "\u6f22", 3, 3 },
		{ "\u6f22", 2, 0 },
		{ "a\u6f22\u6f22", 6, 4 },
		{ "a\U0001f600", 4, 1 },
		{ "\x80\x80\x80\x80\x80\x80", 5, 5 }, /* not UTF-8: it may be cut anywhere */
		{ "\x80\x80", 1, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(utf8_cut(cases[i].s, cases[i].max), cases[i].left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),  cmocka_unit_test(test_structure),
		cmocka_unit_test(test_pretty),   cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_utf8_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
