/* probes_limits.c - attacks on the limits of the plan: they take more than a limit allows.
 * The control takes the same amount outside, for a moment; if that would burden the
 * machine, the probe is void. */
#include "sandbox/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "os/probe.h"

/* If the plan's limit is higher than this, the attack is not tried, because it would burden the
 * machine. */
#define TRY_PROCESSES 512
#define TRY_FILES     16384
#define TRY_DISK_MB   256
#define TRY_MEMORY_MB 1024
#define BEYOND        8 /* how many more than the limit an attack takes: processes, files or MiB */

/* Returns true if RLIMIT_CORE is 1 byte and no attempt can change it. At any other value the kernel
 * may start the program that core_pattern names. */
static bool core_stays_off(void)
{
	static const rlim_t TRIED[] = { 0, 4096, RLIM_INFINITY };
	struct rlimit r = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(TRIED); i++) {
		r.rlim_cur = r.rlim_max = TRIED[i];
		(void)setrlimit(RLIMIT_CORE, &r);
		if (getrlimit(RLIMIT_CORE, &r) != 0 || r.rlim_cur != 1 || r.rlim_max != 1) {
			return false;
		}
	}
	return true;
}

/* The control does not crash a process: a program of the host would receive the core dump. */
ATTACK(core)
{
	struct rlimit r;
	int status = 0;

	if (getrlimit(RLIMIT_CORE, &r) != 0) {
		return attack_errno(f, "getrlimit");
	}
	if (w->outside) {
		return r.rlim_max > 1
		               ? attack_worked(f, "core dumps can be switched on")
		               : attack_failed(f, "your own hard limit of core files is %llu",
		                               (unsigned long long)r.rlim_max);
	}
	if (r.rlim_max == 0) {
		return probe_core_taker() != ' '
		               ? attack_worked(f, "your hard limit of core files is 0, and at 0 a "
		                                  "program of "
		                                  "the host can receive core dumps")
		               : attack_failed(f, "your own hard limit of core files is 0");
	}
	pid_t pid = fork();
	if (pid == 0) {
		if (core_stays_off()) {
			(void)kill(getpid(), SIGSEGV);
		}
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		return attack_errno(f, "fork");
	}
	if (!WIFSIGNALED(status)) {
		return attack_worked(
		        f, "the limit is not 1: a program of the host can receive core dumps");
	}
	return WCOREDUMP(status) ? attack_worked(f, "left a core dump")
	                         : attack_failed(f, "core dumps cannot be switched on");
}

static void raise_soft(__rlimit_resource_t what)
{
	struct rlimit r;

	if (getrlimit(what, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(what, &r);
	}
}

ATTACK(processes)
{
	uint64_t want = w->plan->res.max_processes + BEYOND;
	uint64_t made = 0;
	int hold[2];

	if (want > TRY_PROCESSES || pipe2(hold, O_CLOEXEC) != 0) {
		return attack_void(f, "the limit is too high to be tried");
	}
	/* Each child waits until the pipe is closed, so all exist at once. */
	int e = 0;
	while (made < want && e == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			char c;
			(void)close(hold[1]);
			(void)!read(hold[0], &c, 1);
			_exit(0);
		}
		e = pid < 0 ? errno : 0;
		made += pid > 0;
	}
	(void)close(hold[1]);
	(void)close(hold[0]);
	while (waitpid(-1, NULL, 0) > 0) {
	}
	errno = e;
	if (made == 0) {
		return attack_errno(f, "no process at all");
	}
	return made == want ? attack_worked(f, "%llu processes at once", (unsigned long long)made)
	                    : attack_failed(f, "ended at %llu", (unsigned long long)made);
}

ATTACK(open_files)
{
	uint64_t want = w->plan->res.max_open_files + BEYOND;
	uint64_t made = 0;

	if (want > TRY_FILES) {
		return attack_void(f, "the limit is too high to be tried");
	}
	raise_soft(RLIMIT_NOFILE);
	int last = -1;
	for (int fd = 0; made < want && (fd = fcntl(w->out_fd, F_DUPFD_CLOEXEC, 64)) >= 0; made++) {
		last = fd;
	}
	for (int fd = 64; fd <= last; fd++) {
		(void)close(fd);
	}
	return made == want ? attack_worked(f, "%llu files at once", (unsigned long long)made)
	                    : attack_failed(f, "ended at %llu", (unsigned long long)made);
}

ATTACK(disk)
{
	uint64_t mb = w->plan->res.max_disk_mb + BEYOND;
	char path[PATH_MAX];

	if (mb > TRY_DISK_MB) {
		return attack_void(f, "the limit is too high to be tried");
	}
	snprintf(path, sizeof(path), "%s/.ssb-prove-disk-%d", w->scratch, (int)getpid());
	auto_fd fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0) {
		return attack_void(f, "cannot make a file in %.60s", w->scratch);
	}
	(void)unlink(path);
	return fallocate(fd, 0, 0, (off_t)(mb << 20)) == 0
	               ? attack_worked(f, "took %llu MB", (unsigned long long)mb)
	               : attack_errno(f, "fallocate");
}

static bool machine_can_spare(uint64_t bytes)
{
	struct sysinfo si;

	return sysinfo(&si) == 0 && (uint64_t)si.freeram * si.mem_unit > bytes * 2;
}

/* Inside the sandbox, the cgroup, the watchdog or RLIMIT_DATA ends the attack. The attack waits one
 * second, so that the watchdog has time for a check. */
ATTACK(memory)
{
	size_t bytes = (size_t)(w->plan->res.memory_mb + BEYOND) << 20;

	if (w->plan->res.memory_mb > TRY_MEMORY_MB || (w->outside && !machine_can_spare(bytes))) {
		return attack_void(f, "the limit is too high to be tried here");
	}
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		return attack_errno(f, "mmap");
	}
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i] = 1;
	}
	if (!w->outside) {
		(void)nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	(void)munmap(p, bytes);
	return attack_worked(f, "used %zu MB", bytes >> 20);
}

/* ---- the table: memory is last, since it can end the whole sandbox ----------------- */

static const struct attack LIMITS[] = {
	ROW("core-dump", "leave a core dump", core),
	ROW("open-files", "open more files than max_open_files", open_files),
	ROW("disk", "fill more than max_disk_mb", disk),
	ROW("processes", "start more processes than max_processes", processes),
	{ "memory", "use more than memory_mb", memory, NULL, NULL, 0, 1, 0 },
};

const struct attack_group ATTACKS_LIMITS = { LIMITS, ARRAY_LEN(LIMITS) };
