/* test_probe.c - unit tests of src/os/probe. The test finds out each answer in another way, too. So
 * it notices a probe that always answers yes, or always no. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "os/probe.h"

static void test_parse_release(void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned major;
		unsigned minor;
	} CASES[] = {
		{ "6.1.0-18-amd64", 0, 6, 1 },
		{ "5.15.153", 0, 5, 15 },
		{ "6.18.44-fc-v445", 0, 6, 18 },
		{ "10.0-rc1", 0, 10, 0 },
		{ "", -1, 77, 77 },
		{ "six.one", -1, 77, 77 },
		{ "6", -1, 77, 77 },
		{ ".5.15", -1, 77, 77 },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		unsigned major = 77;
		unsigned minor = 77;
		assert_int_equal(probe_parse_release(CASES[i].text, &major, &minor), CASES[i].r);
		assert_int_equal(major, CASES[i].major); /* a failure must not change the outputs */
		assert_int_equal(minor, CASES[i].minor);
	}
}

static void test_version_ok(void **state)
{
	assert_true(probe_version_ok(5, 15));
	assert_true(probe_version_ok(5, 19));
	assert_true(probe_version_ok(6, 0));
	assert_false(probe_version_ok(5, 14));
	assert_false(probe_version_ok(4, 99));
}

static void test_kernel_is_the_running_one(void **state)
{
	unsigned major = 0;
	unsigned minor = 0;
	char line[128];
	char expected[64];

	assert_int_equal(probe_kernel(&major, &minor), 0);
	assert_int_equal(probe_line("/proc/sys/kernel/osrelease", line, sizeof(line)), 0);
	snprintf(expected, sizeof(expected), "%u.%u", major, minor);
	assert_memory_equal(line, expected, strlen(expected));
}

/* The minimum supported kernel offers these features to every user. */
static void test_features_of_the_minimum_kernel(void **state)
{
	static const enum probe_id IDS[] = { PROBE_SECCOMP, PROBE_OPENAT2, PROBE_CLOSE_RANGE,
		                             PROBE_CLONE3, PROBE_PIDFD };

	for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
		int e = probe_feature(IDS[i]);
		if (e != 0) {
			fail_msg("feature %d: %s", (int)IDS[i], strerror(e));
		}
	}
}

static ino_t own_namespace(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void test_probing_changes_nothing_here(void **state)
{
	static const char *const NS[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
	ino_t before[ARRAY_LEN(NS)];

	for (size_t i = 0; i < ARRAY_LEN(NS); i++) {
		before[i] = own_namespace(NS[i]);
	}
	for (int i = 0; i < PROBE_COUNT; i++) {
		(void)probe_feature((enum probe_id)i);
	}
	(void)probe_idmap("/");
	for (size_t i = 0; i < ARRAY_LEN(NS); i++) {
		assert_int_equal(before[i], own_namespace(NS[i]));
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child process is left */
	assert_int_equal(errno, ECHILD);
}

static ino_t outside_net;

static int differs_from_outside(void)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st) != 0) {
		return -1;
	}
	errno = EALREADY;
	return st.st_ino != outside_net && geteuid() == 0 ? 0 : -1;
}

static void test_in_userns_really_is(void **state)
{
	outside_net = own_namespace("net");
	assert_int_equal(probe_in_userns(CLONE_NEWNET, differs_from_outside), 0);
	/* The control: without the flag it is the same network namespace. */
	assert_int_equal(probe_in_userns(0, differs_from_outside), EALREADY);
}

static int fails_with_exdev(void)
{
	errno = EXDEV;
	return -1;
}

static int never_ends(void)
{
	alarm(1); /* the probe's own time limit, shortened to 1 s */
	return pause();
}

static void test_in_userns_reports_what_failed(void **state)
{
	assert_int_equal(probe_in_userns(0, fails_with_exdev), EXDEV);
	assert_int_equal(probe_in_userns(CLONE_NEWPID, fails_with_exdev), EXDEV);
	assert_int_equal(probe_in_userns(0, never_ends), ETIMEDOUT);
}

/* A process that cannot fork cannot use namespaces: the probe must report the error. The test runs
 * as an unprivileged user in a child. */
static void test_userns_unavailable_is_seen(void **state)
{
	int status = 0;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		if (geteuid() == 0 && setresuid(65533, 65533, 65533) != 0) {
			_exit(2);
		}
		if (setrlimit(RLIMIT_NPROC, &none) != 0) {
			_exit(3);
		}
		_exit(probe_feature(PROBE_USERNS) == EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_idmap_needs_root_and_a_path(void **state)
{
	int missing = probe_idmap("/nonexistent-path-of-the-test");
	if (geteuid() == 0) {
		assert_int_equal(missing, ENOENT);
		assert_int_equal(probe_idmap("/proc"), EINVAL); /* procfs cannot be idmapped */
	} else {
		assert_int_equal(missing, EPERM);
	}
}

static void test_sysctl(void **state)
{
	char path[] = "/tmp/ssb-test-probe-XXXXXX";
	long v = 5;

	assert_int_equal(probe_sysctl("/proc/sys/kernel/pid_max", &v), 0);
	assert_true(v > 300);
	v = 5;
	assert_int_equal(probe_sysctl("/proc/sys/kernel/no-such", &v), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(probe_sysctl("/proc/sys/kernel/ostype", &v), -1); /* "Linux" */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(v, 5);

	auto_fd fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "-12\n", 4), 4);
	assert_int_equal(probe_sysctl(path, &v), 0);
	assert_int_equal(v, -12);
	assert_int_equal(unlink(path), 0);
}

static void test_line_is_cut_to_its_buffer(void **state)
{
	char line[5];

	assert_int_equal(probe_line("/proc/sys/kernel/ostype", line, sizeof(line)), 0);
	assert_string_equal(line, "Linu");
}

static void test_groups_always_answer(void **state)
{
	char groups[64];

	size_t n = probe_risky_groups(groups, sizeof(groups));
	assert_int_equal(n == 0, groups[0] == '\0');
}

/* probe_risky_groups() reports "sudo" for a member, and nothing without that group. */
static void test_groups_of_a_member(void **state)
{
	char groups[64];
	int status = 0;
	gid_t sudo_gid = 27;
	char line[64] = "";

	if (geteuid() != 0) {
		return; /* a user cannot change groups; root's run tests this */
	}
	auto_file f = fopen("/etc/group", "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL &&
	       sscanf(line, "sudo:%*[^:]:%u", &sudo_gid) != 1) {
	}
	assert_memory_equal(line, "sudo:", 5);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		gid_t other = 65533;
		int bad = setgroups(1, &other) != 0 || setegid(other) != 0 ||
		          probe_risky_groups(groups, sizeof(groups)) != 0;
		bad |= setgroups(1, &sudo_gid) != 0 ||
		       probe_risky_groups(groups, sizeof(groups)) != 1 ||
		       strcmp(groups, "sudo") != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_release),
		cmocka_unit_test(test_version_ok),
		cmocka_unit_test(test_kernel_is_the_running_one),
		cmocka_unit_test(test_features_of_the_minimum_kernel),
		cmocka_unit_test(test_probing_changes_nothing_here),
		cmocka_unit_test(test_in_userns_really_is),
		cmocka_unit_test(test_in_userns_reports_what_failed),
		cmocka_unit_test(test_userns_unavailable_is_seen),
		cmocka_unit_test(test_idmap_needs_root_and_a_path),
		cmocka_unit_test(test_sysctl),
		cmocka_unit_test(test_line_is_cut_to_its_buffer),
		cmocka_unit_test(test_groups_always_answer),
		cmocka_unit_test(test_groups_of_a_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
