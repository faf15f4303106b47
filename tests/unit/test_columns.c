/* test_columns.c - how many columns a text takes, and where a line of it ends. */
#include <string.h>

#include "unit.h"
#include "base/amount.h"
#include "base/columns.h"
#include "base/own.h"

static void test_count(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
	} cases[] = {
		{ "", 0 },
		{ "plain", 5 },
		{ "gr\xc3\xbc\xc3\x9f", 4 },
		{ "\xe6\xbc\xa2\xe5\xad\x97", 4 }, /* two Chinese characters */
		{ "\xf0\x9f\x98\x80", 2 },         /* a face */
		{ "\033[31mred\033[0m", 3 },       /* our own colours */
		{ "\033[", 2 },                    /* not a whole sequence */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(columns_count(cases[i].text, strlen(cases[i].text)),
		                 cases[i].columns);
	}
}

static void test_fit(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
		bool strict;
		size_t bytes;
	} cases[] = {
		{ "one two three", 20, false, 13 },
		{ "one two three", 9, false, 8 }, /* ends after a space */
		{ "onetwothree", 4, false, 4 },   /* no space: ends between two characters */
		{ "\xe6\xbc\xa2\xe5\xad\x97", 3, false, 3 }, /* never within a character */
		{ "\xc3\xbc\xc3\xbc\xc3\xbc", 3, false, 6 },
		{ "\xc3\xbc\xc3\xbc\xc3\xbc", 3, true, 2 },
		{ "\033[31mab\033[0m", 2, false, 11 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(columns_fit(cases[i].text, strlen(cases[i].text), cases[i].columns,
		                             cases[i].strict),
		                 cases[i].bytes);
	}
}

static void test_amounts(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
		int64_t micros;
		const char *time;
	} cases[] = {
		{ 0, "0 B", 0, "0 ms" },
		{ 1023, "1023 B", 6500, "6 ms" },
		{ 1024, "1 KiB", 1500000, "1.5 s" },
		{ 4200, "4.1 KiB", 60000000, "60 s" },
		{ 1 << 20, "1 MiB", 303000000, "5m03s" },
		{ UINT64_MAX, "16.0 EiB", INT64_MAX, "2562047788h00m" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf b = BUF(64);
		amount_bytes(&b, cases[i].bytes);
		assert_string_equal(b.data, cases[i].text);
		buf_reset(&b);
		amount_time(&b, cases[i].micros);
		assert_string_equal(b.data, cases[i].time);
	}
	auto_buf b = BUF(64);
	amount_bytes_of_policy(&b, 10 << 20);
	assert_string_equal(b.data, "10 MB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_amounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
