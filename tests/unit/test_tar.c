/* test_tar.c - headers of tar archives: valid ones, and invalid ones of every kind. */
#include "tar_world.h"

#include <stdlib.h>

#include "base/own.h"

static int header(const uint8_t block[TAR_BLOCK], struct tar_member *m)
{
	const char *why = NULL;
	int rc = tar_header(block, m, &why);

	assert_true((rc < 0) == (why != NULL));
	return rc;
}

static void test_members(void **state)
{
	static const struct {
		struct made made;
		enum tar_type type;
	} CASES[] = {
		{ { '0', "a/b", NULL, "hello", 04755 }, TAR_FILE },
		{ { '\0', "a/b", NULL, "hello", 0 }, TAR_FILE },
		{ { '\0', "a/b/", NULL, NULL, 0 }, TAR_DIR },
		{ { '5', "a", NULL, NULL, 0755 }, TAR_DIR },
		{ { '1', "a", "b", NULL, 0 }, TAR_HARDLINK },
		{ { '2', "a", "../b", NULL, 0 }, TAR_SYMLINK },
		{ { '3', "null", NULL, NULL, 0666 }, TAR_SPECIAL },
		{ { '6', "fifo", NULL, NULL, 0666 }, TAR_SPECIAL },
		{ { 'x', "pax", NULL, "11 path=abc\n", 0 }, TAR_PAX },
		{ { 'L', "long", NULL, "abc", 0 }, TAR_LONG_NAME },
	};
	uint8_t block[TAR_BLOCK];

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		const struct made *m = &CASES[i].made;
		struct tar_member got;
		tar_make(m, block);
		assert_int_equal(header(block, &got), 1);
		assert_int_equal(got.type, CASES[i].type);
		assert_string_equal(got.name, m->name);
		assert_string_equal(got.link, m->link != NULL ? m->link : "");
		assert_int_equal(got.size, m->data != NULL ? strlen(m->data) : 0);
		assert_int_equal(got.mode, m->mode != 0 ? m->mode : 0644);
	}
}

static void test_prefix_and_full_fields(void **state)
{
	struct made m = { '0', "name", NULL, NULL, 0 };
	struct tar_member got;
	uint8_t block[TAR_BLOCK];

	tar_make(&m, block);
	memset(block, 'n', 100);
	memset(block + 345, 'p', 155);
	tar_sum(block);
	assert_int_equal(header(block, &got), 1);
	assert_int_equal(strlen(got.name), 256);
	assert_int_equal(got.name[155], '/');
	memcpy(block + 257, "ustar  ", 8); /* in the GNU format there is no field "prefix" */
	tar_sum(block);
	assert_int_equal(header(block, &got), 1);
	assert_int_equal(strlen(got.name), 100);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *field; /* 12 bytes */
		int rc;
		uint64_t size;
	} CASES[] = {
		{ "00000000017\0", 1, 15 },
		{ "         17 ", 1, 15 },
		{ "777777777777", 1, UINT64_C(0777777777777) },
		{ "\x80\0\0\0\0\0\0\0\0\0\x01\x00", 1, 256 },
		{ "\x80\0\0\0\0\x01\0\0\0\0\0\0", 1, UINT64_C(1) << 48 },
		{ "\x80\0\0\0\0\x01\0\0\0\0\0\x01", -1, 0 },
		{ "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -1, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -1, 0 },
		{ "00000000018\0", -1, 0 },
		{ "-0000000001\0", -1, 0 },
		{ "0000000x001\0", -1, 0 },
	};
	struct made m = { '0', "name", NULL, NULL, 0 };
	uint8_t block[TAR_BLOCK];

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct tar_member got;
		tar_make(&m, block);
		memcpy(block + 124, CASES[i].field, 12);
		tar_sum(block);
		assert_int_equal(header(block, &got), CASES[i].rc);
		if (CASES[i].rc == 1) {
			assert_true(got.size == CASES[i].size);
		}
	}
}

static void test_bad_headers(void **state)
{
	struct made fine = { '0', "name", NULL, "x", 0 };
	uint8_t block[TAR_BLOCK] = { 0 };
	struct tar_member got;

	assert_int_equal(header(block, &got), 0); /* a block of zeros is the end of the archive */
	tar_make(&fine, block);
	assert_int_equal(header(block, &got), 1); /* the control: a valid header */
	for (size_t i = 0; i < TAR_BLOCK; i += 7) {
		tar_make(&fine, block);
		block[i] ^= 0x15;
		assert_true(header(block, &got) == -1 || (i >= 148 && i < 156));
	}
	static const char KINDS[] = "SVMDN89zA";
	for (size_t i = 0; KINDS[i] != '\0'; i++) {
		struct made odd = { KINDS[i], "name", NULL, NULL, 0 };
		tar_make(&odd, block);
		assert_int_equal(header(block, &got), -1);
	}
	static const char WITHOUT[] = "123456";
	for (size_t i = 0; WITHOUT[i] != '\0'; i++) {
		struct made data = { WITHOUT[i], "name", "l", "data", 0 };
		tar_make(&data, block);
		assert_int_equal(header(block, &got), -1);
	}
}

static void test_extra(void **state)
{
	static const struct {
		enum tar_type type;
		const char *data;
		size_t len; /* 0: strlen */
		int rc;
		const char *name, *link;
	} CASES[] = {
		{ TAR_PAX, "12 path=abc\n", 0, 0, "abc", "" },
		{ TAR_PAX, "12 path=abc\n15 linkpath=xy\n", 0, 0, "abc", "xy" },
		{ TAR_PAX, "12 path=abc\n12 path=def\n", 0, 0, "def", "" },
		{ TAR_PAX, "20 mtime=1234.56789\n12 path=abc\n", 0, 0, "abc", "" },
		{ TAR_PAX, "5 a=\n", 0, 0, "", "" },
		{ TAR_PAX, "", 0, 0, "", "" },
		{ TAR_PAX, "11 path=abc\n", 0, -1, "", "" },
		{ TAR_PAX, "13 path=abc\n", 0, -1, "", "" },
		{ TAR_PAX, "99999999 path=abc\n", 0, -1, "", "" },
		{ TAR_PAX, "12", 0, -1, "", "" },
		{ TAR_PAX, "x2 path=abc\n", 0, -1, "", "" },
		{ TAR_PAX, "4 =\n", 0, -1, "", "" },
		{ TAR_PAX, "9 nothing\n", 0, -1, "", "" },
		{ TAR_PAX, "9 path=a\0", 10, -1, "", "" },
		{ TAR_PAX, "12 path=a\0c\n", 12, -1, "", "" },
		{ TAR_PAX, "9 path=\n", 0, -1, "", "" },
		{ TAR_PAX, "10 size=1\n", 0, 0, "", "" },
		{ TAR_PAX, "11 size=-1\n", 0, -1, "", "" },
		{ TAR_PAX, "25 size=99999999999999999\n", 0, -1, "", "" },
		{ TAR_PAX, "22 GNU.sparse.major=1\n", 0, -1, "", "" },
		{ TAR_LONG_NAME, "abc\0", 4, 0, "abc", "" },
		{ TAR_LONG_NAME, "abc", 3, 0, "abc", "" },
		{ TAR_LONG_LINK, "abc\0", 4, 0, "", "abc" },
		{ TAR_LONG_NAME, "a\0bc", 4, -1, "", "" },
		{ TAR_LONG_NAME, "\0", 1, -1, "", "" },
		{ TAR_LONG_NAME, "", 0, -1, "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		size_t len = CASES[i].len > 0 ? CASES[i].len : strlen(CASES[i].data);
		auto_free char *exact = malloc(len + 1);
		struct tar_over over = { 0 };
		const char *why = NULL;
		assert_non_null(exact);
		memcpy(exact, CASES[i].data, len);
		assert_int_equal(tar_extra(CASES[i].type, exact, len, &over, &why), CASES[i].rc);
		if (CASES[i].rc == 0) {
			assert_string_equal(over.name, CASES[i].name);
			assert_string_equal(over.link, CASES[i].link);
		} else {
			assert_non_null(why);
		}
	}
}

static void test_long_name_at_the_cap(void **state)
{
	static char name[TAR_PATH + 1];
	struct tar_over over = { 0 };
	const char *why = NULL;

	memset(name, 'a', sizeof(name));
	assert_int_equal(tar_extra(TAR_LONG_NAME, name, TAR_PATH - 1, &over, &why), 0);
	assert_int_equal(strlen(over.name), TAR_PATH - 1);
	assert_int_equal(tar_extra(TAR_LONG_NAME, name, TAR_PATH, &over, &why), -1);
}

static void test_apply(void **state)
{
	struct tar_over over = { .name = "n", .link = "l", .sized = true, .size = 7 };
	struct tar_member m = { .type = TAR_FILE, .name = "old", .link = "old", .size = 1 };
	const char *why = NULL;

	assert_int_equal(tar_apply(&over, &m, &why), 0);
	assert_string_equal(m.name, "n");
	assert_string_equal(m.link, "l");
	assert_int_equal(m.size, 7);
	m = (struct tar_member){ .type = TAR_FILE, .name = "next", .size = 1 };
	assert_int_equal(tar_apply(&over, &m, &why), 0); /* `over` applies to one member only */
	assert_string_equal(m.name, "next");
	assert_int_equal(m.size, 1);
	over = (struct tar_over){ .sized = true, .size = 1 };
	m = (struct tar_member){ .type = TAR_DIR, .name = "d" };
	assert_int_equal(tar_apply(&over, &m, &why), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members), cmocka_unit_test(test_prefix_and_full_fields),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_extra),   cmocka_unit_test(test_long_name_at_the_cap),
		cmocka_unit_test(test_apply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
