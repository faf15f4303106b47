/* test_number.c - numbers in text: which texts are numbers, the largest allowed number, and the
 * number after it. */
#include "unit.h"
#include "base/number.h"
#include "base/own.h"

#define UNTOUCHED 77

static void test_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t max, value;
		const char *rest; /* the text after the number; NULL: no number up to `max` */
	} ROWS[] = {
		{ "0", 0, 0, "" },
		{ "1", 0, 0, NULL },
		{ "007x", 7, 7, "x" },
		{ "8080:", 65535, 8080, ":" },
		{ "65535", 65535, 65535, "" },
		{ "65536", 65535, 0, NULL },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX, "" },
		{ "18446744073709551616", UINT64_MAX, 0, NULL },
		{ "100000000000000000000", UINT64_MAX, 0, NULL },
		{ "1.5", 9, 1, ".5" },
		{ "0x10", 99, 0, "x10" },
		{ "", 9, 0, NULL },
		{ " 1", 9, 0, NULL },
		{ "+1", 9, 0, NULL },
		{ "-1", 9, 0, NULL },
		{ "x", 9, 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		uint64_t v = UNTOUCHED, whole = UNTOUCHED;
		const char *rest = number_read(ROWS[i].text, ROWS[i].max, &v);
		bool all = ROWS[i].rest != NULL && ROWS[i].rest[0] == '\0';
		assert_int_equal(rest != NULL, ROWS[i].rest != NULL);
		assert_int_equal(v, rest != NULL ? ROWS[i].value : UNTOUCHED);
		if (rest != NULL) {
			assert_string_equal(rest, ROWS[i].rest);
		}
		assert_int_equal(number_parse(ROWS[i].text, 0, ROWS[i].max, &whole), all);
		assert_int_equal(whole, all ? ROWS[i].value : UNTOUCHED);
	}
}

static void test_least(void **state)
{
	uint64_t v = UNTOUCHED;

	assert_false(number_parse("4", 5, 6, &v));
	assert_int_equal(v, UNTOUCHED);
	assert_true(number_parse("5", 5, 6, &v));
	assert_int_equal(v, 5);
	assert_true(number_parse("6", 5, 6, &v));
	assert_false(number_parse("7", 5, 6, &v));
	assert_int_equal(v, 6);
}

static void test_signed(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
		const char *rest;
	} ROWS[] = {
		{ "0", 0, "" },
		{ "-0", 0, "" },
		{ "-12:30", -12, ":30" },
		{ "9223372036854775807", INT64_MAX, "" },
		{ "9223372036854775808", 0, NULL },
		{ "-9223372036854775808", INT64_MIN, "" },
		{ "-9223372036854775809", 0, NULL },
		{ "--1", 0, NULL },
		{ "-", 0, NULL },
		{ "+1", 0, NULL },
		{ "- 1", 0, NULL },
		{ "", 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		int64_t v = UNTOUCHED, whole = UNTOUCHED;
		const char *rest = number_read_signed(ROWS[i].text, &v);
		bool all = ROWS[i].rest != NULL && ROWS[i].rest[0] == '\0';
		assert_int_equal(rest != NULL, ROWS[i].rest != NULL);
		assert_int_equal(v, rest != NULL ? ROWS[i].value : UNTOUCHED);
		if (rest != NULL) {
			assert_string_equal(rest, ROWS[i].rest);
		}
		assert_int_equal(number_parse_signed(ROWS[i].text, &whole), all);
		assert_int_equal(whole, all ? ROWS[i].value : UNTOUCHED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
