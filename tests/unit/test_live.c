/* test_live.c - control sockets: their names, which peers may connect, and which sockets are
 * removed. Processes are identified by pid and start time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "sandbox/meter.h"
#include "session/fanout.h"
#include "session/live.h"
#include "session/place.h"

/* The state directory of the tests. Its path is longer than the path of a socket may be. */
static struct world {
	char top[64];
	char state[512];
	int dir;
} w;

static int setup(void **state)
{
	snprintf(w.top, sizeof(w.top), "/tmp/ssb-live-XXXXXX");
	assert_non_null(mkdtemp(w.top));
	snprintf(w.state, sizeof(w.state), "%s/%0200d/%0200d", w.top, 1, 2);
	assert_int_equal(live_dir(w.state, true, &w.dir, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	char path[600];

	close(w.dir);
	snprintf(path, sizeof(path), "%s/live", w.state);
	rmdir(path);
	rmdir(w.state);
	*strrchr(w.state, '/') = '\0';
	rmdir(w.state);
	assert_int_equal(rmdir(w.top), 0); /* nothing is left in it */
	return 0;
}

static void test_ask_and_answer(void **state)
{
	struct live_request q = { .version = LIVE_VERSION, .op = LIVE_KILL, .grace_ms = 7 };
	struct live_request got;
	char name[LIVE_NAME];
	int listening;

	assert_int_equal(live_listen(w.dir, name, &listening, NULL), 0);
	assert_true(live_name_valid(name));
	int client = live_connect(w.dir, name);
	assert_true(client >= 0);
	assert_int_equal(live_send(client, &q, sizeof(q)), 0);
	int server = live_accept(listening);
	assert_true(server >= 0);
	assert_int_equal(live_recv(server, &got, sizeof(got)), 1);
	assert_int_equal(got.grace_ms, 7);
	assert_int_equal(live_recv(server, &got, sizeof(got)), 0);
	/* All of these are the same error: a message of another version, a message of another size,
	 * and the end of the connection. */
	q.version++;
	assert_int_equal(live_send(client, &q, sizeof(q)), 0);
	assert_int_equal(live_recv(server, &got, sizeof(got)), -1);
	assert_int_equal(live_send(client, &q, sizeof(q) - 1), 0);
	assert_int_equal(live_recv(server, &got, sizeof(got)), -1);
	close(client);
	assert_int_equal(live_recv(server, &got, sizeof(got)), -1);
	close(server);
	close(listening);
	assert_int_equal(unlinkat(w.dir, name, 0), 0);
}

static void test_names_do_not_leave_the_directory(void **state)
{
	static const char *const bad[] = { "", "..", "../x", "0123456789abcdef0123456789abcde/",
		                           "0123456789ABCDEF0123456789ABCDEF" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(live_name_valid(bad[i]));
		assert_int_equal(live_connect(w.dir, bad[i]), -1);
		assert_int_equal(errno, ENOENT);
	}
}

static void test_only_what_is_dead_and_old_is_removed(void **state)
{
	char names[3][LIVE_NAME];
	const struct timespec old[2] = { { 1000000, 0 }, { 1000000, 0 } };
	int fds[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(live_listen(w.dir, names[i], &fds[i], NULL), 0);
	}
	/* A process listens on socket 0. No process listens on 1 and 2. But 2 is new, and its
	 * process may soon listen. */
	assert_int_equal(utimensat(w.dir, names[0], old, 0), 0);
	assert_int_equal(utimensat(w.dir, names[1], old, 0), 0);
	close(fds[1]);
	close(fds[2]);
	live_tidy(w.dir);
	assert_int_equal(faccessat(w.dir, names[0], F_OK, 0), 0);
	assert_int_equal(faccessat(w.dir, names[1], F_OK, 0), -1);
	assert_int_equal(faccessat(w.dir, names[2], F_OK, 0), 0);
	close(fds[0]);
	assert_int_equal(unlinkat(w.dir, names[0], 0), 0);
	assert_int_equal(unlinkat(w.dir, names[2], 0), 0);
}

static void test_directory_of_others(void **state)
{
	char path[600];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/live", w.state);
	assert_int_equal(chmod(path, 0711), 0);
	struct ssb_error err = { 0 };
	assert_int_equal(live_dir(w.state, true, &fd, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(live_dir(w.state, false, &fd, NULL), 0);
	close(fd);
}

/* Only processes of the owner and of root may connect. The change of uid is made in a child
 * process, because it cannot be undone. */
static void test_only_the_owner_and_root_are_heard(void **state)
{
	char name[LIVE_NAME];
	int listening;
	int wstatus;

	if (geteuid() != 0) {
		return; /* only root can change its uid; the suite also runs as root */
	}
	assert_int_equal(live_listen(w.dir, name, &listening, NULL), 0);
	for (int as_other = 0; as_other < 2; as_other++) {
		pid_t pid = fork();
		if (pid == 0) {
			/* Let other users connect, as far as the file's mode matters: this test is
			 * about the check of the uid. */
			if (as_other && (fchmodat(w.dir, name, 0666, 0) != 0)) {
				_exit(2);
			}
			int c = live_connect(w.dir, name); /* the child is root */
			_exit(c < 0 ? 3 : 0);
		}
		assert_int_equal(waitpid(pid, &wstatus, 0), pid);
		assert_int_equal(wstatus, 0);
		int server = live_accept(listening);
		assert_true(server >= 0);
		close(server);
	}
	/* The listener belongs to root. The client has another uid and is refused. */
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), w.dir);
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(chmod(w.top, 0711), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setuid(65534) != 0) {
			_exit(2);
		}
		int c = live_connect(w.dir, name);
		_exit(c < 0 ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	assert_int_equal(wstatus, 0); /* the client could connect */
	int server = live_accept(listening);
	assert_int_equal(server, -1);
	assert_int_equal(chmod(path, 0700), 0);
	close(listening);
	assert_int_equal(unlinkat(w.dir, name, 0), 0);
}

static void test_a_process_and_its_double(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	uint64_t start = meter_started(pid);
	assert_true(start > 0);
	/* With another start time, the same number means another process. */
	assert_int_equal(place_open(pid, start + 1), -1);
	assert_int_equal(errno, ESRCH);
	int fd = place_open(pid, start);
	assert_true(fd >= 0);
	assert_false(place_dead(fd));
	assert_int_equal(place_kill(fd), 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(place_dead(fd));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(meter_started(pid), 0);
	assert_int_equal(place_open(pid, start), -1);
	assert_int_equal(errno, ESRCH);
	close(fd);
	assert_int_equal(place_open(0, 0), -1);
	assert_int_equal(place_open(-1, 0), -1);
}

/* ---- a keeper on a busy machine ------------------------------------------- */

#define LOOKS 3 /* when the clock was queried so often, every keeper has its request */

static int slow = -1; /* clock_gettime() below writes to this fd the byte that keep() waits for */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	static int looks;
	long rc = syscall(SYS_clock_gettime, id, ret);

	looks = slow >= 0 && id == CLOCK_MONOTONIC ? looks + 1 : 0;
	if (looks == LOOKS) {
		(void)!write(slow, "x", 1);
	}
	if (looks >= LOOKS) {
		ret->tv_nsec += 300000000;
		ret->tv_sec += ret->tv_nsec / 1000000000;
		ret->tv_nsec %= 1000000000;
	}
	return (int)rc;
}

/* Plays a keeper: waits for the byte, confirms the request, and then ends its run. */
static int keep(int listening, pid_t init, int let)
{
	struct live_reply r = { .version = LIVE_VERSION, .answer = LIVE_HEARD };
	struct live_request q;
	struct pollfd p = { .fd = listening, .events = POLLIN };
	char c;

	if (poll(&p, 1, 20000) != 1 || read(let, &c, 1) != 1) {
		return 1;
	}
	int client = live_accept(listening);
	if (live_recv(client, &q, sizeof(q)) != 1 || q.op != LIVE_KILL ||
	    live_send(client, &r, sizeof(r)) != 0) {
		return 1;
	}
	(void)usleep(100000);
	return kill(init, SIGKILL);
}

/* A keeper that answers late must not make the grace period of its run shorter. */
static void test_a_slow_keeper_keeps_the_grace(void **state)
{
	struct live_request q = { .version = LIVE_VERSION, .op = LIVE_KILL, .grace_ms = 60000 };
	struct targets all = { 0 };
	struct target t = { 0 };
	int listening, let[2], status;

	assert_int_equal(pipe(let), 0);
	t.run.init = fork();
	if (t.run.init == 0) {
		pause();
		_exit(0);
	}
	t.run.init_start = meter_started(t.run.init);
	assert_int_equal(live_listen(w.dir, t.run.socket, &listening, NULL), 0);
	pid_t keeper = fork();
	if (keeper == 0) {
		_exit(keep(listening, t.run.init, let[0]));
	}
	assert_true(targets_add(&all, &t));
	slow = let[1];
	fanout(&all, w.dir, &q);
	slow = -1;
	assert_true(all.v[0].heard && all.v[0].done);
	assert_false(all.v[0].forced);
	assert_int_equal(waitpid(keeper, &status, 0), keeper);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(t.run.init, NULL, 0), t.run.init);
	assert_int_equal(unlinkat(w.dir, t.run.socket, 0), 0);
	targets_done(&all);
	close(listening);
	close(let[0]);
	close(let[1]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ask_and_answer),
		T(test_names_do_not_leave_the_directory),
		T(test_only_what_is_dead_and_old_is_removed),
		T(test_directory_of_others),
		T(test_only_the_owner_and_root_are_heard),
		cmocka_unit_test(test_a_process_and_its_double),
		T(test_a_slow_keeper_keeps_the_grace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
