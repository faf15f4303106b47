/* test_observer.c - the observer as an object: what it handles and what it leaves alone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "observe/observe.h"
#include "policy/danger.h"

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

/* The observer and a plan that looks its dangerous places up must say the same. */
static bool has(const char *home, const char *store)
{
	const struct owner owner = { .uid = getuid(), .gid = getgid(), .home = home };
	struct danger *d = danger_new(&owner, ACCESS_READ);
	struct string_list found = { 0 };
	char path[PATH_MAX];

	assert_non_null(d);
	struct string_list planned = danger_take_stores(d);
	danger_free(d);
	assert_int_equal(observer_stores(home, &found), 0);
	snprintf(path, sizeof(path), "%s/%s", home, store);
	bool ret = string_list_has(&found, path);
	assert_int_equal(string_list_has(&planned, path), ret);
	string_list_done(&planned);
	string_list_done(&found);
	return ret;
}

/* By its name, whatever is there; what cannot be looked at the owner may have. */
static void test_stores_of_the_owner(void **state)
{
	static const char *const NAMES[] = { ".ssh", ".config/gh", ".local/share/keyrings" };
	char home[] = "/tmp/test-observer-XXXXXX";
	(void)state;

	assert_non_null(mkdtemp(home));
	assert_int_equal(chdir(home), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_false(has(home, NAMES[i]));
		assert_false(has("/nowhere/at/all", NAMES[i]));
		assert_false(has("/dev/null", NAMES[i]));
	}
	assert_int_equal(symlink("/nowhere", ".ssh"), 0);
	assert_int_equal(mkdir(".config", 0700), 0);
	assert_int_equal(mkdir(".config/gh", 0700), 0);
	assert_int_equal(mkdir(".local", 0700), 0);
	assert_int_equal(mkdir(".local/share", 0700), 0);
	assert_int_equal(mkdir(".local/share/keyrings", 0700), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	char closed[sizeof(home) + 8];
	snprintf(closed, sizeof(closed), "%s/loop", home);
	for (size_t i = 0; i < 3; i++) {
		assert_true(has(home, NAMES[i]));
		assert_true(has(closed, NAMES[i]));
	}
	assert_false(has(home, ".aws"));
	assert_int_equal(system("rm -r .ssh .config .local loop && rmdir \"$PWD\""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_the_callers_fds),
		cmocka_unit_test(test_stores_of_the_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
