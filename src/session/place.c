#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"

/* The first line of a small file, without its end; -1: none. */
static int first_line(const char *path, char *out, size_t size)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (n <= 0) {
		return -1;
	}
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

int place_here(struct session_run *run, struct ssb_error *err)
{
	char boot[sizeof(run->boot_id)];
	char host[sizeof(run->host)] = { 0 };

	if (first_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "this boot has no id");
	}
	if (gethostname(host, sizeof(host) - 1) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "this machine has no name");
	}
	memcpy(run->boot_id, boot, sizeof(boot));
	memcpy(run->host, host, sizeof(host));
	return 0;
}

bool place_same_host(const struct session_run *a, const struct session_run *b)
{
	return strcmp(a->host, b->host) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

bool place_restarted(const struct session_run *run, const struct session_run *here)
{
	return strcmp(run->host, here->host) == 0 && strcmp(run->boot_id, here->boot_id) != 0;
}

uint64_t place_start(pid_t pid)
{
	char path[32];
	char text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (pid <= 0 || first_line(path, text, sizeof(text)) != 0) {
		return 0;
	}
	/* The second field is a name in brackets that the process chose itself;
	 * behind the last bracket the third begins. */
	const char *at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

int place_open(pid_t pid, uint64_t start)
{
	if (pid <= 0) {
		errno = ESRCH;
		return -1;
	}
	/* In this order: what the fd holds cannot become another process while
	 * we look at its number. */
	auto_fd fd = (int)syscall(SYS_pidfd_open, pid, 0U);
	if (fd < 0) {
		return -1;
	}
	if (place_start(pid) != start) {
		errno = ESRCH;
		return -1;
	}
	return steal_fd(&fd);
}

int place_kill(int pidfd)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0U);
}

bool place_dead(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents != 0;
}
