/* test_bucket.c - the token bucket: the number of tokens is exact over any time, for each rate, and
 * if the clock goes back. */
#include "base/bucket.h"

#include "unit.h"

static unsigned taken(struct bucket *k, uint64_t now_us)
{
	unsigned n = 0;

	while (n < 1000000 && bucket_take(k, now_us)) {
		n++;
	}
	return n;
}

static void is_full_at_first(void **state)
{
	struct bucket k;

	bucket_init(&k, 100, 250, 5000000);
	assert_int_equal(taken(&k, 5000000), 250);
}

static void refills_by_time(void **state)
{
	struct bucket k;

	bucket_init(&k, 100, 100, 0);
	assert_int_equal(taken(&k, 0), 100);
	assert_int_equal(taken(&k, 9999), 0);
	assert_int_equal(taken(&k, 10000), 1);
	assert_int_equal(taken(&k, 510000), 50);
	assert_int_equal(taken(&k, 3600000000), 100);
}

/* A slow bucket that is read often must not lose a fraction of a token. */
static void slow_drip_is_exact(void **state)
{
	struct bucket k;
	unsigned n = 0;

	bucket_init(&k, 3, 3, 0);
	assert_int_equal(taken(&k, 0), 3);
	for (uint64_t now = 0; now <= 10000000; now += 1000) {
		n += taken(&k, now);
	}
	assert_in_range(n, 29, 30);
}

static void says_when(void **state)
{
	struct bucket k;

	bucket_init(&k, 100, 100, 0);
	assert_int_equal(bucket_due_us(&k, 1), 0);
	assert_int_equal(taken(&k, 0), 100);
	assert_int_equal(bucket_due_us(&k, 1), 10000);
	assert_int_equal(bucket_due_us(&k, 5), 50000);
	assert_false(bucket_take(&k, bucket_due_us(&k, 1) - 1));
	assert_true(bucket_take(&k, bucket_due_us(&k, 1)));
}

static void survives_extremes(void **state)
{
	struct bucket k;

	bucket_init(&k, 1000000, 1000000, 0);
	assert_int_equal(taken(&k, UINT64_MAX), 1000000);
	assert_int_equal(taken(&k, 0), 0); /* a clock that goes back adds no token */
	bucket_init(&k, 1, 1, 0);
	assert_int_equal(taken(&k, UINT64_MAX), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_full_at_first),   cmocka_unit_test(refills_by_time),
		cmocka_unit_test(slow_drip_is_exact), cmocka_unit_test(says_when),
		cmocka_unit_test(survives_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
