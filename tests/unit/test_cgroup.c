/* test_cgroup.c - control groups: their limits, how groups are removed, and which requests for
 * groups are refused. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "cgroup_world.h"

/* Returns true if a new group can have the cpu controller. In v2 the parent of the caller's group
 * must have enabled it. systemd enables it for the slice of a login, but not for the slice of the
 * services. */
static bool cpu_is_offered(void)
{
	char dir[MAX_PATH_BYTES];
	char path[MAX_PATH_BYTES + 128];
	char list[256] = "";

	own_dir(CGROUP_CPU, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 /* v1 */ ||
	       (read(fd, list, sizeof(list) - 1) > 0 && cgroup_list_has(list, "cpu"));
}

/* Runs `body` in a child process inside the group. Returns its wait status. */
static int run_inside(const struct cgroup *cg, int (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		join(cg);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int touch(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		return 98;
	}
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i] = 1;
	}
	return 0;
}

static int touch_little(void)
{
	return touch(8 * MIB);
}

static int touch_much(void)
{
	return touch(64 * MIB);
}

/* Returns the number of children that could be forked, plus 100 if fork() failed with EAGAIN. */
static int fork_many(void)
{
	int n = 0;

	while (n < 20) {
		pid_t pid = fork();
		if (pid < 0) {
			n += errno == EAGAIN ? 100 : 0;
			break;
		}
		if (pid == 0) {
			pause();
			_exit(0);
		}
		n++;
	}
	return n;
}

static int fork_report(void)
{
	int fds[2];
	unsigned char n = 0;

	if (pipe(fds) < 0) {
		return 97;
	}
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		n = (unsigned char)fork_many();
		if (write(fds[1], &n, 1) != 1) {
			_exit(1);
		}
		kill(0, SIGKILL);
	}
	if (pid < 0 || read(fds[0], &n, 1) != 1) {
		return 96;
	}
	waitpid(pid, NULL, 0);
	return n;
}

static void test_memory_limit(void **state)
{
	struct cgroup *cg = make("mem");
	int status = run_inside(cg, touch_little);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(cgroup_oom_kills(cg), 0);
	status = run_inside(cg, touch_much);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(cgroup_oom_kills(cg) > 0);
	assert_int_equal(cgroup_pids_hits(cg), 0);
	cgroup_free(cg);
	assert_int_equal(touch_much(), 0); /* control: possible without the group */
}

static void test_oom_event(void **state)
{
	struct cgroup *cg = make("event");
	auto_fd event = cgroup_oom_eventfd(cg);

	if (is_v2(cg)) {
		assert_int_equal(event, -1);
	} else {
		struct pollfd p = { .fd = event, .events = POLLIN };
		assert_true(event >= 0);
		(void)run_inside(cg, touch_little);
		assert_int_equal(poll(&p, 1, 0), 0);
		(void)run_inside(cg, touch_much);
		assert_int_equal(poll(&p, 1, 20000), 1);
	}
	cgroup_free(cg);
}

static void test_process_limit(void **state)
{
	struct cgroup *cg = make("pids");
	int status = run_inside(cg, fork_report);

	assert_true(WIFEXITED(status));
	/* The group may have 8 processes: the child, its reporter, and 6 more. fork() then fails,
	 * which adds 100. */
	assert_int_equal(WEXITSTATUS(status), 106);
	assert_true(cgroup_pids_hits(cg) > 0);
	cgroup_free(cg);
	assert_int_equal(fork_report(), 20); /* control */
}

static void test_cpu_share(void **state)
{
	struct cgroup *cg = make("cpu");
	char dir[MAX_PATH_BYTES];
	char path[MAX_PATH_BYTES + 128];
	char text[32] = "";

	own_dir(CGROUP_CPU, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/skillsandbox-%d-cpu/%s", dir, (int)getpid(),
	         is_v2(cg) ? "cpu.weight" : "cpu.shares");
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(cgroup_weighs(cg), cpu_is_offered());
	assert_int_equal(fd >= 0, cgroup_weighs(cg));
	if (fd >= 0) {
		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		assert_string_equal(text, is_v2(cg) ? "50\n" : "512\n");
	}
	cgroup_free(cg);
}

static void test_directories_go(void **state)
{
	struct cgroup *cg = make("gone");

	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		assert_true(group_exists((enum cgroup_controller)c, getpid(), "gone"));
	}
	const char *about = strstr(cgroup_describe(cg), "memory, pids");
	assert_non_null(about);
	assert_string_equal(about, cpu_is_offered() ? "memory, pids, cpu" : "memory, pids");
	cgroup_free(cg);
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		assert_false(group_exists((enum cgroup_controller)c, getpid(), "gone"));
	}
	cgroup_free(NULL);
}

/* If a process in the group does not end, cgroup_free() gives up after a short time. */
static void test_free_does_not_hang(void **state)
{
	struct cgroup *cg = make("busy");
	int there[2];
	char said;

	assert_int_equal(pipe2(there, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		join(cg);
		(void)!write(there[1], "x", 1);
		pause();
		_exit(0);
	}
	close(there[1]);
	assert_int_equal(read(there[0], &said, 1), 1);
	close(there[0]);
	alarm(5);
	cgroup_free(cg);
	alarm(0);
	assert_true(group_exists(CGROUP_PIDS, getpid(), "busy"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	/* A later run removes a group only if the process that made it has ended. This test made
	 * it, and is still running. */
	cg = make("after");
	assert_true(group_exists(CGROUP_PIDS, getpid(), "busy"));
	cgroup_free(cg);
	for (int c = CGROUP_CONTROLLERS - 1; c >= 0; c--) {
		char dir[MAX_PATH_BYTES];
		char path[MAX_PATH_BYTES + 128];
		own_dir((enum cgroup_controller)c, dir, sizeof(dir));
		snprintf(path, sizeof(path), "%s/skillsandbox-%d-busy", dir, (int)getpid());
		(void)rmdir(path);
	}
}

/* A killed supervisor that had our process id has left a group with our name: a new group gets
 * another name. */
static void test_name_that_is_taken(void **state)
{
	struct cgroup *left = make("same");
	struct cgroup *cg = make("same");

	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		assert_true(group_exists((enum cgroup_controller)c, getpid(), "same"));
		assert_true(group_exists((enum cgroup_controller)c, getpid(), "same-1"));
	}
	cgroup_free(cg);
	assert_true(group_exists(CGROUP_PIDS, getpid(), "same"));
	assert_false(group_exists(CGROUP_PIDS, getpid(), "same-1"));
	cgroup_free(left);
}

static void test_sweep(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct cgroup *lost = NULL;
		_exit(cgroup_create("lost", &SMALL, &lost, NULL) == 0 ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_true(group_exists(CGROUP_PIDS, pid, "lost"));
	/* The control: a new group is kept, because its maker may be in another pid namespace. */
	cgroup_free(make("early"));
	assert_true(group_exists(CGROUP_PIDS, pid, "lost"));

	char path[MAX_PATH_BYTES + 128];
	struct timespec old[2] = { { .tv_sec = time(NULL) - 60 }, { .tv_sec = time(NULL) - 60 } };
	group_path(CGROUP_PIDS, pid, "lost", path, sizeof(path));
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	struct cgroup *cg = make("sweeper");
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		assert_false(group_exists((enum cgroup_controller)c, pid, "lost"));
	}
	cgroup_free(cg);
}

/* ---- refusals ------------------------------------------------------------ */

static void test_bad_ids(void **state)
{
	char longest[66];
	const char *bad[] = { "", "a/b", "..", "a b", longest };

	memset(longest, 'a', 65);
	longest[65] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ssb_error err = { 0 };
		struct cgroup *cg = (struct cgroup *)&err;
		assert_int_equal(cgroup_create(bad[i], &SMALL, &cg, &err), -1);
		assert_int_equal(err.code, SSB_E_USAGE);
		assert_ptr_equal(cg, &err);
	}
	cgroup_free(make(longest + 1));
}

/* A user without a delegated group gets an error for v1 and v2, and no group is left. */
static void test_unprivileged(void **state)
{
	if (geteuid() != 0) {
		skip();
	}
	pid_t pid = fork();
	if (pid == 0) {
		struct ssb_error err = { 0 };
		struct cgroup *cg = NULL;
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0) {
			_exit(2);
		}
		bool ok = cgroup_create("user", &SMALL, &cg, &err) < 0 && cg == NULL &&
		          err.code == SSB_E_LAYER && strstr(err.text, "v2: ") != NULL &&
		          strstr(err.text, "v1: ") != NULL;
		_exit(ok ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_false(group_exists(CGROUP_PIDS, pid, "user"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_oom_event),
		cmocka_unit_test(test_process_limit),
		cmocka_unit_test(test_cpu_share),
		cmocka_unit_test(test_directories_go),
		cmocka_unit_test(test_free_does_not_hang),
		cmocka_unit_test(test_name_that_is_taken),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_bad_ids),
		cmocka_unit_test(test_unprivileged),
	};

	return WITH_GROUPS(tests);
}
