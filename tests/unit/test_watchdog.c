/* test_watchdog.c - the memory watchdog, with real processes. Each scenario has its own pid
 * namespace. In it, the test is PID 1 and watches a hostile worker. Each scenario runs as root, and
 * as an unprivileged user in a user namespace. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "sandbox/watchdog.h"
#include "watchdog_workers.h"

#define CHECKS 6
#define UNTIL  500 /* maximum number of checks, because a worker's children may need time */
#define NOBODY 65534

struct scenario {
	const char *name;
	int (*worker)(void);
	int flags;
};

enum {
	OVER = 1,
	OLD_KERNEL = 2,
	PIDS_WRAP = 4,
	BUSY = 8,
	LONG = 16,
	SLOW = 32,
	PAUSE = 64,
	STALL = 128
};

static const struct scenario SCENARIOS[] = {
	{ "an idle process", idle, 0 },
	{ "anonymous memory that fits", anon_fits, 0 },
	{ "too much anonymous memory", anon_big, OVER },
	{ "memory shared by fork", anon_cow, 0 },
	{ "memory shared by fork, on a busy machine", anon_cow, BUSY },
	{ "memory shared by a pool of forks, of 8 ms a look", anon_cow_pool, LONG },
	{ "the same, and the looks take too long", anon_cow_pool, OVER | SLOW },
	{ "the same, and the machine pauses once", anon_cow_pool, PAUSE },
	{ "the same, and it pauses all the time", anon_cow_pool, OVER | STALL },
	{ "too much memory behind a pool of forks", anon_behind_pool, OVER },
	{ "the same, and the looks take too long", anon_behind_pool, OVER | SLOW },
	{ "memory copied after fork", anon_cow_written, OVER },
	{ "memory copied after fork, on a busy machine", anon_cow_written, OVER | BUSY },
	{ "shared anonymous memory that fits", shared_anon_fits, 0 },
	{ "too much shared anonymous memory", shared_anon_big, OVER },
	{ "an unmapped memfd that fits, in five processes", memfd_fits, 0 },
	{ "an unmapped memfd that is too big", memfd_big, OVER },
	{ "two memfds that are too big together", memfd_two, OVER },
	{ "a mapped memfd that fits", memfd_mapped, 0 },
	{ "a mapped memfd and a shared mapping", memfd_beside_shared, OVER },
	{ "a big memfd, mapped and closed", memfd_mapped_and_closed, OVER },
	{ "a big memfd of a non-dumpable process", memfd_non_dumpable, OVER },
	{ "a memfd of non-dumpable processes that fits", memfd_fits_non_dumpable, 0 },
	{ "too much memory of a non-dumpable process", anon_non_dumpable, OVER },
	{ "a big memfd behind thousands of fds", memfd_behind_many, OVER },
	{ "a big file on the tmpfs, unlinked", scratch_big, OVER },
	{ "a mapped file on the tmpfs that fits", scratch_mapped, 0 },
	{ "a SysV segment that fits", sysv_fits, 0 },
	{ "a big SysV segment, detached", sysv_detached, OVER },
	{ "too many semaphores", semaphores, OVER },
	{ "too many messages", messages, OVER },
	{ "page tables that fit", tables_fit, 0 },
	{ "too many page tables", tables_big, OVER },
	{ "cached pages of a file", file_pages, 0 },
	{ "vfork before exec", vforked, 0 },
	{ "a storm of processes", churn, 0 },
	{ "threads, and a mapped memfd that fits", threads_fits, 0 },
	{ "first thread gone, memory that fits", leader_gone_fits, 0 },
	{ "first thread gone, too much memory", leader_gone_anon, OVER },
	{ "first thread gone, a big memfd", leader_gone_memfd, OVER },
	{ "first thread gone, a mapped memfd that fits", leader_gone_memfd_mapped, 0 },
	{ "first thread gone, non-dumpable, memory", leader_gone_anon_non_dumpable, OVER },
	{ "first thread gone, non-dumpable, memfd", leader_gone_memfd_non_dumpable, OVER },
	{ "first thread gone, memfd, old kernel", leader_gone_memfd_non_dumpable,
	  OVER | OLD_KERNEL },
	{ "first thread gone, the others in a relay", leader_gone_relay, OVER },
	{ "a memfd that fits in two tables of a process", own_table_fits, 0 },
	{ "a memfd in a thread's own table, and memory", own_table_and_anon, OVER },
	{ "a big memfd in a thread's own table", own_table_memfd, OVER },
	{ "the same, non-dumpable", own_table_memfd_non_dumpable, OVER },
	{ "the same, non-dumpable, old kernel", own_table_memfd_non_dumpable, OVER | OLD_KERNEL },
	{ "the same, one thread among hundreds", own_table_of_many, OVER },
	{ "the same, behind thousands of fds", own_tables_with_many_fds, OVER },
	{ "the same, with tids below the pid", own_tables_with_many_fds, OVER | PIDS_WRAP },
};

/* ---- the namespace --------------------------------------------------------- */

static int write_text(const char *path, const char *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* Maps one uid, which is not 0 in the namespace, as the sandbox does. */
static int enter_userns(void)
{
	char text[64];
	unsigned uid = geteuid();
	unsigned gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0) {
		return -1;
	}
	snprintf(text, sizeof(text), "1000 %u 1", uid);
	int r = write_text("/proc/self/uid_map", text) + write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "1000 %u 1", gid);
	return r + write_text("/proc/self/gid_map", text);
}

static int keep_caps(uint32_t low)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { .effective = low, .permitted = low } };

	return (int)syscall(SYS_capset, &h, d);
}

/* Runs in the process that start_worker() executes. */
static int worker_main(const char *index, const char *ready)
{
	ready_fd = (int)strtol(ready, NULL, 10);
	int r = SCENARIOS[strtoul(index, NULL, 10)].worker();
	(void)!write(ready_fd, r == 0 ? "0" : "1", 1);
	pause();
	return 0;
}

/* Starts the worker and waits until it is set up; 0 on success. The worker is executed without
 * capabilities, as a skill is, so its memory belongs to the user namespace. */
static int start_worker(const struct scenario *s, int exe_fd)
{
	int fds[2];
	char c = 0;
	char index[16];
	char ready[16];

	if (pipe(fds) < 0) {
		return -1;
	}
	snprintf(index, sizeof(index), "%d", (int)(s - SCENARIOS));
	snprintf(ready, sizeof(ready), "%d", fds[1]);
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = { (char *)"worker", index, ready, NULL };
		if (keep_caps(0) == 0) {
			fexecve(exe_fd, argv, environ);
		}
		_exit(1);
	}
	close(fds[1]);
	return pid > 0 && read(fds[0], &c, 1) == 1 && c == '0' ? 0 : -1;
}

/* Makes pidfd_open() fail for threads, as in Linux before 6.9. */
static int forget_thread_pidfds(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) +
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Makes sure that the next process gets the highest possible pid. */
static int wrap_pids(void)
{
	char text[32] = { 0 };
	auto_fd fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		return -1;
	}
	snprintf(text, sizeof(text), "%ld", strtol(text, NULL, 10) - 2);
	return write_text("/proc/sys/kernel/ns_last_pid", text);
}

static bool busy;    /* before each reading of the clock, other processes use 20 ms */
static long work_ms; /* before each reading, the watchdog itself uses so many ms */
static int pause_at; /* before this reading, nothing runs for 10 s; -1: before each */
static long lost_ms;

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int rc = __real_clock_gettime(id, ret);

	if (work_ms > 0 || (busy && id == CLOCK_MONOTONIC)) {
		lost_ms += work_ms > 0 ? work_ms : 20;
	}
	if (id == CLOCK_MONOTONIC && (pause_at < 0 || (pause_at > 0 && --pause_at == 0))) {
		lost_ms += 10000;
	}
	if (work_ms > 0 || id == CLOCK_MONOTONIC) {
		ret->tv_sec += lost_ms / 1000;
		ret->tv_nsec += lost_ms % 1000 * 1000000;
	}
	return rc;
}

/* Watches the worker of the scenario. Runs as PID 1. Returns the exit status: 0 as expected, 1 not
 * as expected, 2 the set-up failed. */
static int watch(const struct scenario *s, int exe_fd)
{
	static struct watchdog w;
	uint64_t used = 0;
	unsigned next = 0;
	int over = 0;

	if (mount("proc", "/proc", "proc", 0, NULL) < 0 ||
	    mount("scratch", "/tmp", "tmpfs", 0, "size=1g") < 0) {
		fprintf(stderr, "mount: %s\n", strerror(errno));
		return 2;
	}
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int scratch_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (((s->flags & OLD_KERNEL) != 0 && forget_thread_pidfds() < 0) ||
	    ((s->flags & PIDS_WRAP) != 0 && wrap_pids() < 0)) {
		return 2;
	}
	/* Like init: not dumpable, and only with CAP_SYS_PTRACE. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || keep_caps(1u << CAP_SYS_PTRACE) < 0) {
		return 2;
	}
	watchdog_init(&w, LIMIT, proc_fd, scratch_fd);
	if (watchdog_check(&w, &used, &next) != 0) {
		fprintf(stderr, "over before the start: %llu\n", (unsigned long long)used);
		return 2;
	}
	if (start_worker(s, exe_fd) < 0) {
		fprintf(stderr, "the worker could not be set up\n");
		return 2;
	}
	busy = (s->flags & BUSY) != 0;
	pause_at = (s->flags & STALL) != 0 ? -1 : (s->flags & PAUSE) != 0 ? 10 : 0;
	work_ms = (s->flags & SLOW) != 0 ? 50 : (s->flags & LONG) != 0 ? 4 : 0;
	for (int i = 0; i < ((s->flags & OVER) != 0 ? UNTIL : CHECKS) && over == 0; i++) {
		over = watchdog_check(&w, &used, &next);
		usleep(next < 20 ? next * 1000 : 20000);
	}
	if (over != (s->flags & OVER) || next < WATCHDOG_MIN_MS || next > WATCHDOG_MAX_MS ||
	    (over == 1 && used <= LIMIT)) {
		fprintf(stderr, "'%s': over %d, used %llu kB, errors %llu, next %u\n", s->name,
		        over, (unsigned long long)used / 1024, (unsigned long long)w.errors, next);
		return 1;
	}
	return 0;
}

static int run_scenario(const struct scenario *s, bool as_user)
{
	int status;
	auto_fd exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0) {
		if (as_user && geteuid() == 0 &&
		    (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
		     setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
		     prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)) {
			_exit(2);
		}
		if ((as_user && enter_userns() < 0) ||
		    unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
			fprintf(stderr, "namespaces: %s\n", strerror(errno));
			_exit(2);
		}
		pid_t init = fork();
		if (init == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(watch(s, exe_fd));
		}
		waitpid(init, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static void run_all(bool as_user)
{
	int failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
		int r = run_scenario(&SCENARIOS[i], as_user);
		if (r != 0) {
			print_error("%s: %d\n", SCENARIOS[i].name, r);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static void test_as_root(void **state)
{
	if (geteuid() != 0) {
		skip();
	}
	run_all(false);
}

static void test_as_user(void **state)
{
	run_all(true);
}

/* The time until the next check is so short that the memory which is left cannot be used up before
 * it. */
static void test_next_look(void **state)
{
	static struct watchdog w;
	auto_fd proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t used = 0;
	unsigned next = 0;

	watchdog_init(&w, 1ULL << 50, proc_fd, -1);
	do { /* repeats, because a machine may have more fds than one check reads */
		assert_int_equal(watchdog_check(&w, &used, &next), 0);
	} while (w.round_open);
	assert_int_equal(next, WATCHDOG_MAX_MS);
	watchdog_init(&w, 1, proc_fd, -1);
	/* the whole machine uses more than one byte */
	assert_int_equal(watchdog_check(&w, &used, &next), 1);
	assert_true(used > 1);
	assert_true(next >= WATCHDOG_MIN_MS);
}

static void test_without_proc(void **state)
{
	static struct watchdog w;
	uint64_t used = 0;
	unsigned next = 0;

	watchdog_init(&w, LIMIT, -1, -1);
	assert_int_equal(watchdog_check(&w, &used, &next), -1);
	assert_true(w.errors > 0);
	assert_true(next >= WATCHDOG_MIN_MS && next <= WATCHDOG_MAX_MS);
}

/* If the watchdog has too few fds, the check must fail. It must not conclude that a process has
 * ended because its file cannot be opened. */
static void test_without_fds(void **state)
{
	static struct watchdog w;
	auto_fd proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct rlimit before;
	uint64_t used = 0;
	unsigned next = 0;

	watchdog_init(&w, 1ULL << 50, proc_fd, -1);
	assert_int_equal(watchdog_check(&w, &used, &next), 0); /* the control */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (rlim_t left = 0; left < 3; left++) {
		auto_fd lowest = dup(proc_fd);
		struct rlimit few = { (rlim_t)lowest + left, before.rlim_max };
		own_close(&lowest);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		int r = watchdog_check(&w, &used, &next);
		int error = errno;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		/* A check needs one fd to list /proc and one for a file in it. To list the fds of a
		 * process, it needs a third. */
		assert_int_equal(r, left < 2 ? -1 : 0);
		assert_int_equal(left < 2 ? error : EMFILE, EMFILE);
	}
	assert_int_equal(watchdog_check(&w, &used, &next), 0);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		return worker_main(argv[1], argv[2]);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_root),     cmocka_unit_test(test_as_user),
		cmocka_unit_test(test_next_look),   cmocka_unit_test(test_without_proc),
		cmocka_unit_test(test_without_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
