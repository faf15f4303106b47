/* test_buf.c - the capped buffer: its content, its cap, and that it stays failed after a
 * failure. */
#include <stdlib.h>

#include "unit.h"
#include "base/buf.h"

static void test_appends(void **state)
{
	auto_buf b = BUF(4096);

	buf_adds(&b, "ab");
	buf_addc(&b, 'c');
	buf_add(&b, "d\0e", 3);
	buf_addf(&b, "%d-%s", 42, "x");
	assert_false(b.failed);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "abcd\0e42-x", 11);
}

static void test_cap(void **state)
{
	auto_buf b = BUF(4);

	buf_adds(&b, "abcd");
	assert_false(b.failed);
	buf_addc(&b, 'e');
	assert_true(b.failed);
	assert_string_equal(b.data, "abcd");
	buf_addc(&b, 'f'); /* stays failed */
	assert_null(buf_steal(&b));

	buf_reset(&b);
	buf_addf(&b, "%s", "12345");
	assert_true(b.failed);
	buf_reset(&b);
	buf_addf(&b, "%s", "1234");
	assert_false(b.failed);
	assert_string_equal(b.data, "1234");
}

static void test_huge_length_does_not_wrap(void **state)
{
	auto_buf b = BUF(16);

	buf_adds(&b, "x");
	buf_add(&b, "y", SIZE_MAX);
	assert_true(b.failed);
	assert_int_equal(b.len, 1);
}

static void test_steal(void **state)
{
	struct buf b = BUF(16);
	char *empty = buf_steal(&b);
	assert_string_equal(empty, "");
	free(empty);
	buf_adds(&b, "again");
	char *s = buf_steal(&b);
	assert_string_equal(s, "again");
	assert_null(b.data);
	free(s);
	buf_done(&b);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_huge_length_does_not_wrap),
		cmocka_unit_test(test_steal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
