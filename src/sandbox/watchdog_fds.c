/* watchdog_fds.c - shared memory that is held by an fd and perhaps not mapped.
 *
 * A round looks once at every fd of every process, in ascending order of pid
 * and fd. When a check has spent its share the round stays open and the next
 * check goes on at that place, so that no number of fds can stall init or
 * hide a memfd for long. The set of files is emptied with each new round. */
#include "sandbox/watchdog_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

static unsigned file_slot(uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ (dev << 32)) * 0x9e3779b97f4a7c15ULL;

	return (unsigned)(h >> 54) % WATCHDOG_MAX_FILES;
}

bool watchdog_knows_file(const struct watchdog *w, uint64_t dev, uint64_t ino)
{
	unsigned slot = file_slot(dev, ino);

	for (unsigned i = 0; i < WATCHDOG_MAX_FILES; i++) {
		const struct watchdog_file *f = &w->files[(slot + i) % WATCHDOG_MAX_FILES];
		if (f->ino == 0) {
			return false;
		}
		if (f->ino == ino && f->dev == dev) {
			return true;
		}
	}
	return false;
}

static void file_add(struct watchdog *w, uint64_t dev, uint64_t ino)
{
	unsigned slot = file_slot(dev, ino);

	if (ino == 0 || w->n_files + 1 >= WATCHDOG_MAX_FILES) {
		return; /* one slot stays free, so that every search ends */
	}
	while (w->files[slot].ino != 0) {
		slot = (slot + 1) % WATCHDOG_MAX_FILES;
	}
	w->files[slot] = (struct watchdog_file){ .dev = dev, .ino = ino };
	w->n_files++;
}

static void file_count(struct watchdog *w, const struct stat *st)
{
	uint64_t dev = (uint64_t)st->st_dev;
	uint64_t ino = (uint64_t)st->st_ino;

	if (dev == w->scratch_dev || watchdog_knows_file(w, dev, ino)) {
		return; /* the scratch is counted as a whole */
	}
	file_add(w, dev, ino);
	w->round_bytes += (uint64_t)st->st_blocks * 512;
}

/* Stops the round at this fd when the share of this check is used up. */
static bool round_pause(struct watchdog *w, pid_t pid, int fd)
{
	if (w->round_left > 0) {
		w->round_left--;
		return false;
	}
	w->round_open = true;
	w->round_pid = pid;
	w->round_fd = fd;
	return true;
}

/* Is the fd at this link a memfd? The link is asked first: asking a file of a
 * dead network share for its size could block, reading its name can not. */
static bool is_memfd(int dir_fd, const char *name)
{
	static const char MEMFD[] = "/memfd:";
	char link[sizeof(MEMFD)];
	ssize_t n = readlinkat(dir_fd, name, link, sizeof(link));

	return n >= (ssize_t)sizeof(MEMFD) - 1 && memcmp(link, MEMFD, sizeof(MEMFD) - 1) == 0;
}

struct fd_visit {
	pid_t pid;
	int from;
};

static bool visit_fd(struct watchdog *w, int dir_fd, int fd, void *arg)
{
	const struct fd_visit *v = arg;
	char name[16];
	struct stat st;

	if (fd < v->from) {
		return true;
	}
	if (round_pause(w, v->pid, fd)) {
		return false;
	}
	(void)snprintf(name, sizeof(name), "%d", fd);
	if (is_memfd(dir_fd, name) && fstatat(dir_fd, name, &st, 0) == 0) {
		file_count(w, &st);
	}
	return true;
}

/* A non-dumpable process hides its fd directory, also from a tracer in its
 * own user namespace. The fds themselves can still be taken, one by one. */
static void visit_hidden(struct watchdog *w, pid_t pid, int from)
{
	char text[4096];
	auto_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0 || !watchdog_read(w, pid, "status", text, sizeof(text))) {
		return; /* gone */
	}
	uint64_t size = watchdog_field(text, "FDSize:");
	for (int fd = from; fd >= 0 && (uint64_t)fd < size; fd++) {
		if (round_pause(w, pid, fd)) {
			return;
		}
		auto_fd copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		char name[32];
		struct stat st;
		if (copy < 0 && errno == EBADF) {
			continue;
		}
		if (copy < 0) {
			w->errors += errno != ESRCH;
			return;
		}
		(void)snprintf(name, sizeof(name), "self/fd/%d", copy);
		if (is_memfd(w->proc_fd, name) && fstat(copy, &st) == 0) {
			file_count(w, &st);
		}
	}
}

void watchdog_round_begin(struct watchdog *w)
{
	w->round_left = WATCHDOG_MAX_FDS;
	if (!w->round_open) {
		memset(w->files, 0, sizeof(w->files));
		w->n_files = 0;
		w->round_bytes = 0;
		w->round_pid = 0;
		w->round_fd = 0;
	}
	w->round_open = false; /* unless it is paused again */
}

void watchdog_round_process(struct watchdog *w, pid_t pid)
{
	if (w->round_open || pid < w->round_pid) {
		return; /* paused in this check, or seen before the pause */
	}
	struct fd_visit v = { .pid = pid, .from = pid == w->round_pid ? w->round_fd : 0 };
	auto_fd dir = watchdog_open(w, pid, "fd", O_DIRECTORY);
	if (dir >= 0) {
		(void)watchdog_each(w, dir, visit_fd, &v);
	} else if (errno == EACCES || errno == EPERM) {
		visit_hidden(w, pid, v.from);
	}
}

void watchdog_round_end(struct watchdog *w)
{
	if (!w->round_open) {
		w->memfd_bytes = w->round_bytes;
	}
}

uint64_t watchdog_memfd_bytes(const struct watchdog *w)
{
	return w->round_bytes > w->memfd_bytes ? w->round_bytes : w->memfd_bytes;
}
