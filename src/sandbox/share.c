#include "sandbox/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "os/clone.h"

int share_to_nice(uint64_t shares)
{
	int nice = 0;

	/* Each step of nice is a factor of about 1.25. */
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

int share_set_session(pid_t init, uint64_t shares)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0) {
		return 0;
	}
	text[n] = '\0';
	snprintf(path, sizeof(path), "/proc/%ld/autogroup", strtol(text, NULL, 10));
	snprintf(text, sizeof(text), "%d", share_to_nice(shares));
	/* EACCES: it has not reached execve yet. */
	return proc_write(AT_FDCWD, path, text) != 0 && (errno == EAGAIN || errno == EACCES);
}
