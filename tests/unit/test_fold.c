/* test_fold.c - the table of repeated attempts: which attempts count as equal. The table has a
 * fixed size. */
#include <string.h>

#include "unit.h"
#include "trace/fold.h"
#include "trace/trace_limits.h"
#include "base/own.h"

static const struct bytes ARGS[] = { { "git", 3 }, { "status", 6 } };
static const struct bytes OTHER_ARGS[] = { { "gits", 4 }, { "tatus", 5 } };

static const struct event BASE = {
	.kind = EV_FILE_BLOCKED,
	.status = STATUS_DENIED,
	.op = OP_OPEN,
	.pid = 7,
	.ppid = 1,
	.program = { "/usr/bin/cat", 12 },
	.path = { "/a", 2 },
	.path2 = { "b", 1 },
	.mode = MODE_READ,
	.address = "10.0.0.1",
	.port = 80,
	.reason = REASON_OUTSIDE_PLAN,
	.error = 2,
	.args = ARGS,
	.n_args = 2,
};

static void test_what_is_the_same(void **state)
{
	struct event same = BASE;
	same.pid = 8;
	same.ppid = 7;
	same.message = (struct bytes){ "other words", 11 };
	same.rule = RULE_ENTRY;
	same.entry = "elsewhere";
	struct fold_key key = fold_key(&BASE), other = fold_key(&same);
	assert_memory_equal(&key, &other, sizeof(key));

	struct event differ[17];
	for (size_t i = 0; i < ARRAY_LEN(differ); i++) {
		differ[i] = BASE;
	}
	differ[0].kind = EV_FILE_READ;
	differ[1].status = STATUS_ABSENT;
	differ[2].op = OP_UNLINK;
	differ[3].program = (struct bytes){ "/usr/bin/ca", 11 };
	differ[4].path = (struct bytes){ "/a\0", 3 };
	differ[5].path2 = (struct bytes){ NULL, 0 };
	differ[6].mode = MODE_WRITE;
	differ[7].address = NULL;
	differ[8].port = 81;
	differ[9].reason = REASON_OTHER_HOME;
	differ[10].error = 13;
	differ[11].args = OTHER_ARGS;
	/* Entries 12 and 13 have the same bytes, but divided differently between the two paths. */
	differ[12].path = (struct bytes){ "/ab", 3 };
	differ[12].path2 = (struct bytes){ "", 0 };
	differ[13].path = (struct bytes){ "/", 1 };
	differ[13].path2 = (struct bytes){ "ab", 2 };
	differ[14].leads_to = (struct bytes){ "/c", 2 };
	differ[15].attribute = (struct bytes){ "/c", 2 };
	differ[16].leads_to = (struct bytes){ "", 0 };
	for (size_t i = 0; i < ARRAY_LEN(differ); i++) {
		other = fold_key(&differ[i]);
		if (memcmp(&key, &other, sizeof(key)) == 0) {
			fail_msg("variation %zu is taken for the same", i);
		}
	}
}

static struct fold_key key_in_set(uint64_t set, uint64_t n)
{
	return (struct fold_key){ { set + n * FOLD_SETS, n } };
}

static void test_find_and_count(void **state)
{
	AUTO(fold_done) struct fold f = { 0 };
	struct fold_entry gone, e = { .key = key_in_set(3, 1), .seq = 8, .kind = EV_FILE_READ };
	size_t at = 0;

	assert_null(fold_find(&f, &e.key));
	assert_false(fold_put(&f, &e, &gone));
	struct fold_entry *found = fold_find(&f, &e.key);
	assert_non_null(found);
	assert_int_equal(found->seq, 8);
	assert_false(fold_take(&f, &at, &gone)); /* no repeats to report */
	found->count = 5;
	at = 0;
	assert_true(fold_take(&f, &at, &gone));
	assert_int_equal(gone.count, 5);
	assert_false(fold_take(&f, &at, &gone)); /* each entry is reported once */
}

static void test_full_set_gives_up_the_oldest(void **state)
{
	AUTO(fold_done) struct fold f = { 0 };
	struct fold_entry gone;

	for (uint64_t i = 0; i < FOLD_WAYS; i++) {
		struct fold_entry e = { .key = key_in_set(9, i), .seq = i + 1 };
		assert_false(fold_put(&f, &e, &gone));
	}
	/* Entry 0 is used again, so entry 1 is now the one that was not used for the longest
	 * time. */
	struct fold_key first = key_in_set(9, 0), second = key_in_set(9, 1);
	fold_find(&f, &first)->count = 1;
	struct fold_entry more = { .key = key_in_set(9, 100), .seq = 100 };
	assert_false(fold_put(&f, &more, &gone)); /* false: the removed entry had no repeats */
	assert_null(fold_find(&f, &second));
	for (uint64_t i = 2; i < FOLD_WAYS; i++) {
		struct fold_key key = key_in_set(9, i);
		fold_find(&f, &key)->count = i;
	}
	struct fold_entry last = { .key = key_in_set(9, 101), .seq = 101 };
	assert_true(fold_put(&f, &last, &gone));
	assert_int_equal(gone.seq, 1); /* entry 0: all others were used after it */
	assert_int_equal(gone.count, 1);
}

static void test_a_flood_stays_in_the_table(void **state)
{
	AUTO(fold_done) struct fold f = { 0 };
	struct fold_entry gone;
	uint64_t told = 0, counted = 0;

	for (uint64_t i = 0; i < 20 * FOLD_ENTRIES; i++) {
		struct fold_entry e = { .key = { { i * 0x9e3779b97f4a7c15ULL, i } }, .seq = i + 1 };
		if (fold_put(&f, &e, &gone)) {
			told += gone.count;
		}
		fold_find(&f, &e.key)->count = i % 3;
		counted += i % 3;
	}
	size_t at = 0, left = 0;
	while (fold_take(&f, &at, &gone)) {
		told += gone.count;
		left++;
	}
	assert_true(left <= FOLD_ENTRIES);
	assert_int_equal(told, counted); /* no repeat is lost */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_the_same),
		cmocka_unit_test(test_find_and_count),
		cmocka_unit_test(test_full_set_gives_up_the_oldest),
		cmocka_unit_test(test_a_flood_stays_in_the_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
