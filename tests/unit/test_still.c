/* test_still.c - pausing a tree of processes by signals, and measuring its CPU time. The trees are
 * real child processes of the test. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "sandbox/meter.h"
#include "sandbox/still.h"

#define DEPTH 12

static struct watchdog dog;
static volatile uint64_t *beats;

static int setup(void **state)
{
	beats = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	watchdog_init(&dog, 0, open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1);
	return beats == MAP_FAILED || dog.proc_fd < 0 ||
	       prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0;
}

static void burn(unsigned ms)
{
	struct timespec t;

	do {
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 < ms);
}

/* Starts a chain of `depth` processes. Each increments its own counter for ever. */
static pid_t chain(int depth)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (depth > 1) {
			(void)chain(depth - 1);
		}
		for (;;) {
			beats[depth]++;
			usleep(1000);
		}
	}
	return pid;
}

static bool all_beat(void)
{
	uint64_t before[DEPTH + 1];
	bool all = true; /* true if every process counts within 200 ms */

	for (int i = 1; i <= DEPTH; i++) {
		before[i] = beats[i];
	}
	usleep(200000);
	for (int i = 1; i <= DEPTH; i++) {
		all = all && beats[i] != before[i];
	}
	return all;
}

static bool all_beat_soon(void)
{
	bool all = false;

	for (int i = 0; i < 100 && !all; i++) {
		all = all_beat();
	}
	return all;
}

static bool none_beats(void)
{
	uint64_t sum[2] = { 0 };

	for (int k = 0; k < 2; k++) {
		for (int i = 1; i <= DEPTH; i++) {
			sum[k] += beats[i];
		}
		usleep(50000);
	}
	return sum[0] == sum[1];
}

static bool some_beat_soon(void)
{
	bool some = false;

	for (int i = 0; i < 400 && !some; i++) {
		some = !none_beats();
	}
	return some;
}

static void reap_all(void)
{
	/* The tree is not checked after each signal, because that would take as long as all other
	 * tests in this file. */
	do {
		still_signal(&dog, false, SIGKILL);
		usleep(1000);
		while (waitpid(-1, NULL, WNOHANG) > 0) {
		}
	} while (waitpid(-1, NULL, WNOHANG) == 0);
}

static void test_tree_stands(void **state)
{
	assert_true(chain(DEPTH) > 0);
	assert_true(all_beat_soon());
	assert_true(still_moving(&dog, false));
	for (int i = 0; i < 10000 && still_moving(&dog, false); i++) {
		still_signal(&dog, false, SIGSTOP);
		usleep(1000);
	}
	assert_false(still_moving(&dog, false));
	assert_true(none_beats());
	still_signal(&dog, false, SIGCONT);
	assert_true(all_beat_soon());
	reap_all();
	assert_false(still_moving(&dog, false)); /* no process of the tree is left */
}

static struct rlimit set_files(rlim_t files)
{
	struct rlimit before, now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = (struct rlimit){ files < before.rlim_max ? files : before.rlim_max, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

/* The walk needs fds for each level of the tree. If they do not suffice, the tree does not count as
 * paused. */
static void test_deeper_than_there_are_fds(void **state)
{
	assert_true(chain(DEPTH) > 0);
	assert_true(all_beat_soon());
	struct rlimit before = set_files((rlim_t)dog.proc_fd + 8);
	for (int i = 0; i < 100; i++) {
		still_signal(&dog, false, SIGSTOP);
		usleep(1000);
	}
	bool moving = still_moving(&dog, false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(moving);
	assert_true(some_beat_soon());
	reap_all();
}

/* If the tree is so deep that the walk would need too much stack, it does not count as paused. (If
 * the test is aborted, the processes end after 60 s.) */
static void test_deeper_than_there_is_stack(void **state)
{
	static const char DEEPER[] = "[ $1 = 0 ] && echo || sh -c \"$0\" \"$0\" $(($1 - 1)) & "
	                             "exec sleep 60";
	struct rlimit before = set_files(8192);
	int there[2];
	char said;

	assert_int_equal(pipe(there), 0);
	if (fork() == 0) {
		(void)dup2(there[1], STDOUT_FILENO);
		(void)execl("/bin/sh", "sh", "-c", DEEPER, DEEPER, "1200", NULL);
		_exit(127);
	}
	(void)close(there[1]);
	assert_int_equal(read(there[0], &said, 1), 1);
	assert_true(still_moving(&dog, false));
	reap_all();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)close(there[0]);
}

/* The parent in vfork() does not stop before its child has ended or called exec, but until then it
 * executes no code. So both count as paused. */
static void test_vfork_stands(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (vfork() == 0) { /* NOLINT: the test needs vfork() */
			for (;;) {
				(void)pause();
			}
		}
		_exit(0);
	}
	usleep(50000);
	for (int i = 0; i < 10000 && still_moving(&dog, false); i++) {
		still_signal(&dog, false, SIGSTOP);
		usleep(1000);
	}
	assert_false(still_moving(&dog, false));
	reap_all();
}

/* The CPU time of a tree is that of the process, of an ended child that it waited for, and of a
 * running child. */
static void test_meter_adds_up(void **state)
{
	int there[2];
	char said;

	assert_int_equal(pipe(there), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			burn(150);
			_exit(0);
		}
		(void)wait(NULL);
		if (fork() == 0) {
			burn(200);
			(void)!write(there[1], "x", 1);
			(void)pause();
		}
		burn(100);
		(void)pause();
	}
	assert_int_equal(read(there[0], &said, 1), 1);
	uint64_t us = 0;
	for (int i = 0; i < 1000 && us < 420000; i++) {
		usleep(20000);
		us = meter_tree(pid);
	}
	assert_in_range(us, 420000, 700000);
	assert_true(meter_started(pid) > 0);
	reap_all();
	assert_int_equal(meter_tree(pid), 0);
	assert_int_equal(meter_started(pid), 0);
	(void)close(there[0]);
	(void)close(there[1]);
}

/* The parent ignores SIGCHLD, so the kernel adds the time of its ended children to no sum. The
 * meter keeps the time that it has measured of them, and never goes back. */
static void test_meter_keeps_what_vanishes(void **state)
{
	struct meter m = { 0 };
	uint64_t last = 0, looked = 0;
	int seen[2]; /* one byte allows one child to end */
	char c;

	assert_int_equal(pipe(seen), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)signal(SIGCHLD, SIG_IGN);
		for (int i = 0; i < 2; i++) {
			if (fork() == 0) {
				burn(200);
				(void)!read(seen[0], &c, 1);
				_exit(0);
			}
			while (wait(NULL) > 0) {
			}
		}
		burn(10);
		usleep(200000);
		_exit(0);
	}
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		meter_look(&m, pid, NULL);
		assert_true(m.us >= last);
		last = m.us;
		if (looked < 2 && last >= (looked + 1) * 175000) {
			assert_int_equal(write(seen[1], "x", 1), 1);
			looked++;
		}
		usleep(20000);
	}
	/* the kernel counts in ticks of 10 ms, rounded down */
	assert_in_range(last, 350000, 600000);
	(void)close(seen[0]);
	(void)close(seen[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_stands),
		cmocka_unit_test(test_deeper_than_there_are_fds),
		cmocka_unit_test(test_deeper_than_there_is_stack),
		cmocka_unit_test(test_vfork_stands),
		cmocka_unit_test(test_meter_adds_up),
		cmocka_unit_test(test_meter_keeps_what_vanishes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
