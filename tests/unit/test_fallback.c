/* test_fallback.c - the end of a run without namespaces: every process ends, or a message says that
 * some are left. The test replaces the clock, the list of children and kill(). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "sandbox/fallback.h"

static bool unlisted, immortal;
static time_t ahead; /* each query of the clock moves it by so many seconds */
static int kills;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int __wrap_open64(const char *path, int flags, ...)
{
	if (unlisted && strstr(path, "/children") != NULL) {
		errno = ENOENT;
		return -1;
	}
	return __real_open64(path, flags);
}

int __wrap_kill(pid_t pid, int sig)
{
	kills++;
	return immortal ? 0 : __real_kill(pid, sig);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	static time_t now;
	int rc = __real_clock_gettime(id, t);

	now += ahead;
	t->tv_sec += now;
	return rc;
}

/* Starts three processes, each with a child. */
static int people(void **state)
{
	unlisted = immortal = false;
	kills = 0;
	ahead = 0;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			(void)fork();
			(void)alarm(60); /* so that they end even if the test fails */
			for (;;) {
				(void)pause();
			}
		}
	}
	return 0;
}

static int people_end(void **state)
{
	unlisted = immortal = false;
	ahead = 0;
	return fallback_end_all() && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static void test_all_end(void **state)
{
	assert_true(fallback_end_all());
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_true(fallback_end_all()); /* no process is left to end */
}

static void test_who_is_not_listed_is_left(void **state)
{
	unlisted = true;
	ahead = 1;
	assert_false(fallback_end_all());
	assert_int_equal(kills, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
}

static void test_who_does_not_die_is_left(void **state)
{
	immortal = true;
	ahead = 1;
	(void)alarm(20);
	assert_false(fallback_end_all());
	(void)alarm(0);
	assert_true(kills >= 3);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_end, people, people_end),
		cmocka_unit_test_setup_teardown(test_who_is_not_listed_is_left, people, people_end),
		cmocka_unit_test_setup_teardown(test_who_does_not_die_is_left, people, people_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
