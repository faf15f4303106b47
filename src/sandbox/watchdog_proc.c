/* watchdog_proc.c - reads /proc without heap and without waiting. */
#include "sandbox/watchdog_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"

static int number_of(const char *name)
{
	uint64_t n = 0;

	return number_parse(name, 0, 999999999, &n) ? (int)n : -1;
}

/* os/entries.h cannot be used here. If a process ends while its directory is read, getdents64()
 * returns ENOENT. The caller must be able to distinguish this from an empty directory, that is,
 * from a process without threads or fds. */
int watchdog_each(struct watchdog *w, int dir_fd, watchdog_visit *visit, void *arg)
{
	_Alignas(struct dirent64) char buf[8192];

	for (;;) {
		long n = syscall(SYS_getdents64, dir_fd, buf, sizeof(buf));
		if (n <= 0) {
			return (int)n;
		}
		for (long at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(buf + at);
			int number = number_of(e->d_name);
			at += e->d_reclen;
			if (number >= 0 && !visit(w, dir_fd, number, arg)) {
				return 0;
			}
		}
	}
}

int watchdog_open(const struct watchdog *w, pid_t task, const char *name, int flags)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "%d/%s", (int)task, name);
	return openat(w->proc_fd, path, flags | O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

bool watchdog_read(const struct watchdog *w, pid_t task, const char *name, char *out, size_t size)
{
	auto_fd fd = watchdog_open(w, task, name, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	errno = n == 0 ? EIO : errno; /* none of these files is empty */
	return n > 0;
}

bool watchdog_gone(void)
{
	return errno == ENOENT || errno == ESRCH;
}

void watchdog_lost(struct watchdog *w)
{
	if (!watchdog_gone()) {
		w->errors++;
		w->lost = errno;
	}
}

bool watchdog_status(struct watchdog *w, pid_t task, char out[WATCHDOG_STATUS_BYTES])
{
	bool found = watchdog_read(w, task, "status", out, WATCHDOG_STATUS_BYTES);

	if (found && strstr(out, "\nThreads:") == NULL) { /* every task has this line, so the text
		                                             was cut before it */
		errno = E2BIG;
		found = false;
	}
	if (!found) {
		watchdog_lost(w);
	}
	return found;
}

bool watchdog_threaded(struct watchdog *w, pid_t pid)
{
	char path[40];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%d/task", (int)pid);
	if (fstatat(w->proc_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		watchdog_lost(w);
		return false;
	}
	return st.st_nlink > 2 + 1; /* the link count is 2, plus 1 for each subdirectory, which here
	                               is a thread */
}

uint64_t watchdog_field(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (*text != '\0') {
		if (strncmp(text, key, len) == 0) {
			return strtoull(text + len, NULL, 10);
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return 0;
}
