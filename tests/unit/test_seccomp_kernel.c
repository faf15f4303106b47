/* test_seccomp_kernel.c - the system call filters in a real kernel: denied calls (the control is
 * the same call without a filter), and programs that must run without errors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/seccomp.h"
#include "os/tree.h"
#include "seccomp_programs.h"

#define HIGH 0xdeadbeef00000000UL

enum {
	D = SECCOMP_PROFILE_DEFAULT,
	S = SECCOMP_PROFILE_STRICT,
	P = SECCOMP_PROFILE_PERMISSIVE,
	BARE = 99, /* no filter: the control */
};

static char dir[] = "/tmp/ssb-seccomp-XXXXXX";

static int setup(void **state)
{
	return mkdtemp(dir) == NULL || chdir(dir) != 0 ? -1 : 0;
}

static int teardown(void **state)
{
	return tree_remove(AT_FDCWD, dir);
}

static void confine(int profile, bool unix_sockets, bool inet_sockets)
{
	struct ssb_error err = { 0 };

	if (profile == BARE) {
		return;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    seccomp_load((enum seccomp_profile)profile, unix_sockets, inet_sockets, &err) != 0) {
		dprintf(2, "%s\n", err.text);
		_exit(99);
	}
}

/* ---- single calls ---------------------------------------------------------- */

struct call {
	int profile;
	bool unix_sockets;
	bool inet_sockets;
	int want; /* the errno; 0: success; -SIGSYS: killed */
	const char *what;
	long nr;
	uint64_t a[5];
};

#define PTR(p) ((uint64_t)(uintptr_t)(p))
#define HERE   ((uint64_t)AT_FDCWD)
#define BAD_FD ((uint64_t)-1)
static int pair[2];

/* The arguments after `nr` are those of the system call. */
#define CALL(profile, unix_sockets, inet_sockets, want, what, nr, ...)                             \
	{                                                                                          \
		profile, unix_sockets, inet_sockets, want, what, nr,                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
static const struct call CALLS[] = {
	CALL(D, 1, 1, EPERM, "chmod u+s", SYS_fchmodat, HERE, PTR("f"), 04755),
	CALL(D, 1, 1, EPERM, "chmod u+s, high bits", SYS_fchmodat, HERE, PTR("f"), HIGH | 04755),
	CALL(D, 1, 1, 0, "chmod 0755", SYS_fchmodat, HERE, PTR("f"), 0755),
	CALL(D, 1, 1, EPERM, "create u+s", SYS_openat, HERE, PTR("g"), O_CREAT | O_WRONLY, 04755),
	CALL(D, 1, 1, EPERM, "create u+s, high bits", SYS_openat, HERE, PTR("h"),
	     HIGH | O_CREAT | O_WRONLY, HIGH | 04755),
	CALL(D, 1, 1, EPERM, "unnamed g+s", SYS_openat, HERE, PTR("."), O_TMPFILE | O_WRONLY,
	     02755),
	CALL(D, 1, 1, 0, "open, stale mode", SYS_openat, HERE, PTR("f"), O_RDONLY, 06777),
	CALL(D, 1, 1, 0, "fifo", SYS_mknodat, HERE, PTR("fifo"), S_IFIFO | 0600),
	CALL(D, 1, 1, EPERM, "whiteout", SYS_mknodat, HERE, PTR("w"), S_IFCHR),
	CALL(D, 1, 1, ENOSYS, "openat2", SYS_openat2, HERE, PTR("f"), 0, 0),
	CALL(D, 1, 1, ENOSYS, "clone3", SYS_clone3, 0, 0),
	CALL(D, 1, 1, ENOSYS, "io_uring", SYS_io_uring_setup, 0, 0),
	CALL(D, 1, 1, EPERM, "unshare nothing", SYS_unshare, 0),
	CALL(D, 1, 1, EPERM, "setns", SYS_setns, BAD_FD, 0),
	CALL(D, 1, 1, EPERM, "clone newns", SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD),
	CALL(D, 1, 1, EPERM, "clone newns, high", SYS_clone,
	     HIGH | CLONE_NEWNS | CLONE_FS | SIGCHLD),
	CALL(P, 1, 1, EPERM, "clone newns", SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD),
	CALL(D, 1, 1, EPERM, "traceme", SYS_ptrace, 0),
	CALL(P, 1, 1, 0, "traceme", SYS_ptrace, 0),
	CALL(P, 1, 0, EPERM, "traceme", SYS_ptrace, 0),
	CALL(D, 1, 1, EPERM, "personality", SYS_personality, 0x0040000),
	CALL(D, 1, 1, 0, "personality query", SYS_personality, 0xffffffff),
	CALL(D, 1, 1, EPERM, "mount", SYS_mount, 0, 0, 0, 0, 0),
	CALL(D, 1, 1, EPERM, "open_tree", SYS_open_tree, BAD_FD, PTR("x"), 0),
	CALL(D, 1, 1, EPERM, "pidfd_getfd", SYS_pidfd_getfd, BAD_FD, 0, 0),
	CALL(D, 1, 1, ENOTTY, "btrfs snapshot", SYS_ioctl, BAD_FD, 0x50009417),
	CALL(D, 1, 1, EBUSY, "seccomp listener", SYS_seccomp, 1, 8, 0),
	CALL(D, 1, 1, 0, "tcp", SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	CALL(D, 1, 1, 0, "netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0),
	CALL(D, 1, 1, EAFNOSUPPORT, "uevents", SYS_socket, AF_NETLINK, SOCK_RAW, 15),
	CALL(P, 1, 1, 0, "netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0),
	CALL(D, 1, 1, 0, "unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0),
	CALL(D, 0, 1, EACCES, "unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0),
	CALL(D, 0, 1, EACCES, "unix, high bits", SYS_socket, HIGH | AF_UNIX, SOCK_DGRAM, 0),
	CALL(D, 0, 1, EACCES, "dgram pair", SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, PTR(pair)),
	CALL(D, 0, 1, EACCES, "raw = dgram pair", SYS_socketpair, AF_UNIX, SOCK_RAW, 0, PTR(pair)),
	CALL(D, 0, 1, 0, "stream pair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, PTR(pair)),
	CALL(D, 0, 0, EACCES, "tcp", SYS_socket, AF_INET, SOCK_STREAM, 0),
	CALL(D, 0, 0, EPERM, "limits of others", SYS_prlimit64, 0x7ffffffe, 0, 0, 0),
	CALL(S, 1, 1, EACCES, "tcp", SYS_socket, AF_INET, SOCK_STREAM, 0),
	CALL(S, 1, 1, EACCES, "stream pair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, PTR(pair)),
	CALL(S, 1, 1, EPERM, "child", SYS_clone, SIGCHLD),
	CALL(D, 1, 1, 0, "child", SYS_clone, SIGCHLD),
	CALL(D, 1, 1, -SIGSYS, "TIOCSTI", SYS_ioctl, BAD_FD, 0x5412, PTR("x")),
	CALL(P, 1, 1, -SIGSYS, "TIOCSTI, high bits", SYS_ioctl, BAD_FD, HIGH | 0x5412, PTR("x")),
	CALL(D, 1, 1, -SIGSYS, "TIOCLINUX", SYS_ioctl, BAD_FD, 0x541c, PTR("x")),
	CALL(S, 1, 1, -SIGSYS, "finit_module", SYS_finit_module, BAD_FD, 0, 0xffff),
#if defined(__x86_64__)
	CALL(D, 1, 1, -SIGSYS, "x32", 0x40000000L + SYS_getpid, 0),
	CALL(P, 1, 1, -SIGSYS, "x32", 0x40000000L + SYS_getpid, 0),
#endif
};

/* Returns 0, the errno of the call, or the negative number of the signal that killed the
 * process. */
static int try_call(int profile, const struct call *c)
{
	int wstatus;
	pid_t pid = fork();

	if (pid == 0) {
		confine(profile, c->unix_sockets, c->inet_sockets);
		long r = syscall(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4]);
		_exit(r < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	return WIFSIGNALED(wstatus) ? -WTERMSIG(wstatus) : WEXITSTATUS(wstatus);
}

static void test_calls(void **state)
{
	assert_int_equal(close(creat("f", 0644)), 0);
	for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
		const struct call *c = &CALLS[i];
		(void)unlink("fifo");
		int bare = try_call(BARE, c);
		(void)unlink("fifo");
		int got = try_call(c->profile, c);

		if (got != c->want) {
			fail_msg("%s (row %zu): %d instead of %d", c->what, i, got, c->want);
		}
		/* The control: without a filter, a denied call must have another result, and an
		 * allowed one must succeed. */
		if (c->want != 0 ? bare == c->want : bare != 0) {
			fail_msg("%s (row %zu): %d without a filter", c->what, i, bare);
		}
	}
}

#if defined(__x86_64__)
static int int80(int profile)
{
	int wstatus;
	pid_t pid = fork();

	if (pid == 0) {
		long r = 20; /* number of getpid() on i386 */
		confine(profile, true, true);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(r > 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	return WIFSIGNALED(wstatus) ? -WTERMSIG(wstatus) : WEXITSTATUS(wstatus);
}

static void test_i386_entry(void **state)
{
	if (int80(BARE) != 0) {
		print_message("this kernel has no i386 entry\n");
		assert_int_not_equal(int80(D), 0);
		return;
	}
	assert_int_equal(int80(D), -SIGSYS);
	assert_int_equal(int80(S), -SIGSYS);
	assert_int_equal(int80(P), -SIGSYS);
}
#endif

/* ---- loading ---------------------------------------------------------------- */

static void test_needs_no_new_privs(void **state)
{
	int wstatus;

	pid_t pid = fork();
	if (pid == 0) {
		struct ssb_error err = { 0 };
		/* Root may load a filter without no_new_privs, so root becomes another user
		 * first. */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
			_exit(1);
		}
		int r = seccomp_load(SECCOMP_PROFILE_DEFAULT, true, true, &err);
		_exit(r == -1 && err.code == SSB_E_LAYER && err.sys_errno == EACCES ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	assert_int_equal(wstatus, 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static void test_strict_threads(void **state)
{
	int wstatus;

	pid_t pid = fork();
	if (pid == 0) {
		pthread_t t;
		confine(S, false, true);
		_exit(pthread_create(&t, NULL, nothing, NULL) != 0 || pthread_join(t, NULL) != 0);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	assert_int_equal(wstatus, 0);
}

/* Makes the system calls that init needs. With step_out, then makes one that the filter must
 * deny. */
static int init_life(bool step_out)
{
	int wstatus;
	int p[2];
	pid_t pid = fork();

	if (pid == 0) {
		struct ssb_error err = { 0 };
		char c;
		if (pipe(p) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    seccomp_load_init(&err) != 0) {
			_exit(1);
		}
		int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, &c, 1) != 1 || close(fd) != 0 || write(p[1], "x", 1) != 1 ||
		    waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
			_exit(2);
		}
		if (step_out) {
			(void)open("f", O_RDWR | O_CLOEXEC);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	return WIFSIGNALED(wstatus) ? -WTERMSIG(wstatus) : WEXITSTATUS(wstatus);
}

static void test_init(void **state)
{
	assert_int_equal(init_life(false), 0);
	assert_int_equal(init_life(true), -SIGSYS);
}

/* ---- programs --------------------------------------------------------------- */

struct program {
	int profile;
	bool unix_sockets;
	bool inet_sockets;
	const char *argv[5];
};

static const struct program PROGRAMS[] = {
	{ D, 1, 1, { "/bin/true" } },
	{ S, 1, 1, { "/bin/true" } },
	{ P, 1, 1, { "/bin/true" } },
	{ D, 0, 0, { "/bin/true" } },
	{ D, 1, 1, { "/usr/bin/python3", "-c", PYTHON_ALL } },
	{ D, 0, 1, { "/usr/bin/python3", "-c", PYTHON_ALL } },
	{ P, 0, 1, { "/usr/bin/python3", "-c", PYTHON_ALL } },
	{ S, 0, 1, { "/usr/bin/python3", "-c", PYTHON_PLAIN } },
	{ S, 0, 0, { "/usr/bin/python3", "-c", PYTHON_PLAIN } },
	{ D, 0, 1, { "/usr/bin/node", "-e", NODE_ALL } },
	{ P, 0, 1, { "/usr/bin/node", "-e", NODE_ALL, "interfaces" } },
	{ D, 0, 1, { "/bin/bash", "-c", SHELL_ALL } },
	{ D, 0, 0, { "/bin/bash", "-c", SHELL_ALL } },
	{ D, 0, 1, { "/bin/sh", "-c", GIT_ALL } },
	{ D, 0, 1, { "/bin/sh", "-c", GCC_ALL } },
};

static int run_program(const struct program *p)
{
	int wstatus;
	pid_t pid = fork();

	if (pid == 0) {
		char home[64], tmp[64];
		snprintf(home, sizeof(home), "HOME=%s", dir);
		snprintf(tmp, sizeof(tmp), "TMPDIR=%s", dir);
		char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, home, tmp, NULL };
		confine(p->profile, p->unix_sockets, p->inet_sockets);
		(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
		execve(p->argv[0], (char **)(uintptr_t)p->argv, env);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	return wstatus;
}

static void test_programs(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(PROGRAMS); i++) {
		const struct program *p = &PROGRAMS[i];
		int wstatus = run_program(p);

		if (wstatus != 0) {
			fail_msg("%s (row %zu, profile %d): wait status %#x", p->argv[0], i,
			         p->profile, wstatus);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
#if defined(__x86_64__)
		cmocka_unit_test(test_i386_entry),
#endif
		cmocka_unit_test(test_needs_no_new_privs),
		cmocka_unit_test(test_strict_threads),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
