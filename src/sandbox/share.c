/* share.c - sets the skill's CPU share by nice values, and drops privileges that it inherits from
 * the caller. */
#include "sandbox/share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "os/clone.h"

#define TIMER_SLACK_NS 50000UL /* the kernel's default for a process */
#define CHILD_TRIES    5000    /* how often, every ms, init's child is looked for */

/* From ioprio_get(2), for which there is no header. */
#define IO_OF_PROCESS  1
#define IO_CLASS_SHIFT 13
#define IO_REALTIME    1

int share_to_nice(uint64_t shares)
{
	int nice = 0;

	assert(shares > 0);
	/* Each step of nice changes the weight by a factor of about 1.25. */
	for (double weight = 1024; nice < 19 && (double)shares < weight * 0.9; nice++) {
		weight /= 1.25;
	}
	return nice;
}

int share_leave_realtime(void)
{
	static const struct sched_param NONE = { .sched_priority = 0 };
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR
	               ? sched_setscheduler(0, SCHED_OTHER, &NONE)
	               : 0;
}

int share_shed_caller(void)
{
	long io = syscall(SYS_ioprio_get, IO_OF_PROCESS, 0);

	if (io > 0 && io >> IO_CLASS_SHIFT == IO_REALTIME &&
	    syscall(SYS_ioprio_set, IO_OF_PROCESS, 0, 0) != 0) {
		return -1;
	}
	if (personality(PER_LINUX) < 0) {
		return -1;
	}
	return prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
}

/* Reads the first number of a file in /proc. */
static int read_number(const char *path, long *ret)
{
	char text[32];
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0) {
		errno = n == 0 ? EAGAIN : errno;
		return -1;
	}
	text[n] = '\0';
	*ret = strtol(text, NULL, 10);
	return 0;
}

static int first_child(pid_t init, long *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	return read_number(path, ret);
}

int share_shed_oom(pid_t init)
{
	static const struct timespec instant = { .tv_nsec = 1000000 };
	char path[64];
	long adjusted = 0, skill = 0;
	int failed = read_number("/proc/self/oom_score_adj", &adjusted);

	if (failed != 0 || adjusted >= 0) {
		return failed;
	}
	/* Init forks the skill's process before anything else, but it may not have done so yet. */
	failed = first_child(init, &skill);
	for (int i = 0; i < CHILD_TRIES && failed != 0 && errno == EAGAIN; i++) {
		(void)nanosleep(&instant, NULL);
		failed = first_child(init, &skill);
	}
	snprintf(path, sizeof(path), "/proc/%ld/oom_score_adj", skill);
	return failed != 0 ? -1 : clone_proc_write(AT_FDCWD, path, "0");
}

int share_set_session(pid_t init, uint64_t shares)
{
	char path[64], text[32];
	long skill = 0;

	if (first_child(init, &skill) != 0) {
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%ld/autogroup", skill);
	snprintf(text, sizeof(text), "%d", share_to_nice(shares));
	/* EAGAIN: too many changes now; EACCES: the process has not reached execve yet */
	return clone_proc_write(AT_FDCWD, path, text) != 0 && (errno == EAGAIN || errno == EACCES);
}
