/* The observer as an object: what it takes and what it leaves alone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/observe.h"

/* One that never had a thread has no queue: fd 0 is its caller's. */
static void test_leaves_the_callers_fds(void **state)
{
	const struct ssb_plan plan = { 0 };
	const struct observer_setup setup = { .plan = &plan };
	struct ssb_error err = { 0 };
	struct observer *o;
	(void)state;

	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(observer_new(&setup, &o, &err), 0);
	observer_free(o);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
}

/* Where directories of the system are followed once, nothing in them can be changed:
 * not by a grant, nor because the private home lies there. */
static void test_what_stays_where_it_is(void **state)
{
	static const struct {
		const char *home;
		const char *target;
		enum access access;
		bool fixed;
	} CASES[] = {
		{ "/home/u", "/srv/x", ACCESS_WRITE, true },
		{ "/home/u", "/usr/share/x", ACCESS_READ, true },
		{ "/home/u", "/usr/share/x", ACCESS_WRITE, false },
		{ "/usr/home/u", "/srv/x", ACCESS_WRITE, false },
		{ "/etc/u", "/srv/x", ACCESS_READ, false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct grant grant = { .target = (char *)(uintptr_t)CASES[i].target,
			               .access = CASES[i].access };
		const struct ssb_plan plan = { .home = (char *)(uintptr_t)CASES[i].home,
			                       .grants = &grant,
			                       .n_grants = 1 };
		const struct observer_setup setup = { .plan = &plan };
		struct ssb_error err = { 0 };
		struct observer *o;

		assert_int_equal(observer_new(&setup, &o, &err), 0);
		assert_int_equal(o->fixed, CASES[i].fixed);
		observer_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_the_callers_fds),
		cmocka_unit_test(test_what_stays_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
