/* test_observer.c - observer_free(): which file descriptors it closes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "observe/observe.h"

/* An observer that was never started has no queue, and its fds are 0. It must not close fd 0, which
 * belongs to the caller. */
static void test_leaves_the_callers_fds(void **state)
{
	const struct ssb_plan plan = { 0 };
	const struct observer_setup setup = { .plan = &plan };
	struct ssb_error err = { 0 };
	struct observer *o;

	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(observer_new(&setup, &o, &err), 0);
	observer_free(o);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_the_callers_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
