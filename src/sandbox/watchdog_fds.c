/* watchdog_fds.c - finds memfds by the fds that keep them alive, because a memfd need not be mapped
 * by any process.
 *
 * A round examines every fd of every process once, in ascending order of pid, thread and fd. A
 * check examines at most WATCHDOG_MAX_FDS of them. The round then stays open, and the next check
 * continues there. So no number of threads or fds can stall init or hide a memfd for long. The set
 * of files is emptied with each new round.
 *
 * Threads mostly share one fd table, which is examined once. But a thread can have a table of its
 * own, and the table of the first thread is empty when that thread has ended. */
#include "sandbox/watchdog_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define K_PIDFD_THREAD O_EXCL /* PIDFD_THREAD, a flag of pidfd_open() since Linux 6.9 */

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
		return; /* one slot must stay free: a search ends at a free slot */
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
		return; /* the scratch file system is counted as a whole */
	}
	file_add(w, dev, ino);
	w->round_bytes += (uint64_t)st->st_blocks * 512;
}

/* The fd table of one thread. */
struct fd_table {
	pid_t pid;
	pid_t tid;
	int from; /* the first fd that this round has not examined */
};

/* Counts one fd. If this check may not examine more, interrupts the round before `fd` and returns
 * true. */
static bool round_pause(struct watchdog *w, const struct fd_table *t, int fd)
{
	if (w->round_left > 0) {
		w->round_left--;
		return false;
	}
	w->round_open = true;
	w->round_pid = t->pid;
	w->round_tid = t->tid;
	w->round_fd = fd;
	return true;
}

/* Call it after a read failed, with errno unchanged. If the fd table may not be opened,
 * shared_files() uses an upper bound instead; for other failures there is no upper bound, so the
 * check fails, unless the process is gone. */
static void round_failed(struct watchdog *w)
{
	if (errno == EACCES || errno == EPERM || errno == EINVAL) {
		w->errors++;
		w->round_blind = true;
	} else {
		watchdog_lost(w);
	}
}

/* True if the fd behind this link is a memfd. Reads only the text of the link: stat() of a file on
 * a dead network share could block. */
static bool is_memfd(struct watchdog *w, int dir_fd, const char *name)
{
	static const char MEMFD[] = "/memfd:";
	char link[sizeof(MEMFD)];
	ssize_t n = readlinkat(dir_fd, name, link, sizeof(link));

	if (n < 0 &&
	    errno != ENAMETOOLONG) { /* ENAMETOOLONG: the path of a file in a deep directory */
		round_failed(w);
	}
	return n >= (ssize_t)sizeof(MEMFD) - 1 && memcmp(link, MEMFD, sizeof(MEMFD) - 1) == 0;
}

static bool visit_fd(struct watchdog *w, int dir_fd, int fd, void *arg)
{
	const struct fd_table *t = arg;
	char name[16];
	struct stat st;

	if (fd < t->from) {
		return true;
	}
	if (round_pause(w, t, fd)) {
		return false;
	}
	(void)snprintf(name, sizeof(name), "%d", fd);
	if (is_memfd(w, dir_fd, name)) {
		if (fstatat(dir_fd, name, &st, 0) == 0) {
			file_count(w, &st);
		} else {
			round_failed(w);
		}
	}
	return true;
}

/* Examines the fds of a non-dumpable process. Its fd directory is hidden, even from a tracer in its
 * own user namespace, but the fds can still be copied one by one. */
static void visit_hidden(struct watchdog *w, const struct fd_table *t)
{
	char text[WATCHDOG_STATUS_BYTES];

	if (!watchdog_status(w, t->tid, text)) {
		return;
	}
	uint64_t size = watchdog_field(text, "FDSize:");
	if (size == 0) {
		return; /* the thread has ended */
	}
	unsigned flags = t->tid == t->pid ? 0 : K_PIDFD_THREAD;
	auto_fd pidfd = (int)syscall(SYS_pidfd_open, t->tid, flags);
	if (pidfd < 0) {
		round_failed(w);
		return;
	}
	for (int fd = t->from; fd >= 0 && (uint64_t)fd < size; fd++) {
		if (round_pause(w, t, fd)) {
			return;
		}
		auto_fd copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		char name[32];
		struct stat st;
		if (copy < 0 && errno == EBADF) {
			continue;
		}
		if (copy < 0) {
			round_failed(w);
			return;
		}
		(void)snprintf(name, sizeof(name), "self/fd/%d", copy);
		if (is_memfd(w, w->proc_fd, name) && fstat(copy, &st) == 0) {
			file_count(w, &st);
		}
	}
}

static int round_from(const struct watchdog *w, pid_t pid, pid_t tid)
{
	return pid == w->round_pid && tid == w->round_tid ? w->round_fd : 0;
}

static void visit_table(struct watchdog *w, struct fd_table *t)
{
	auto_fd dir = watchdog_open(w, t->tid, "fd", O_DIRECTORY);

	int r = dir < 0 ? -1 : watchdog_each(w, dir, visit_fd, t);
	if (r < 0 && (errno == EACCES || errno == EPERM)) {
		visit_hidden(w, t);
	} else if (r < 0) {
		round_failed(w);
	}
}

/* ---- threads --------------------------------------------------------------- */

/* The threads of a process whose number is `from` or higher: those with the lowest numbers, sorted.
 * The kernel lists threads by age, and reuses numbers. So in the kernel's order, a later check
 * could not continue where this one stops. */
struct tids {
	pid_t from;
	bool more;
	unsigned n;
	pid_t tid[WATCHDOG_MAX_TIDS];
};

static bool visit_tid(struct watchdog *w, int dir_fd, int tid, void *arg)
{
	struct tids *list = arg;
	unsigned at = list->n;

	(void)w;
	(void)dir_fd;
	while (at > 0 && list->tid[at - 1] > tid) {
		at--;
	}
	if (tid < list->from || at == WATCHDOG_MAX_TIDS) {
		list->more = list->more || tid >= list->from;
		return true;
	}
	if (list->n == WATCHDOG_MAX_TIDS) {
		list->more = true;
		list->n--;
	}
	memmove(&list->tid[at + 1], &list->tid[at], (list->n - at) * sizeof(pid_t));
	list->tid[at] = tid;
	list->n++;
	return true;
}

static void list_tids(struct watchdog *w, pid_t pid, pid_t from, struct tids *list)
{
	auto_fd dir = watchdog_open(w, pid, "task", O_DIRECTORY);

	list->from = from;
	list->more = false;
	list->n = 0;
	if (dir < 0 || watchdog_each(w, dir, visit_tid, list) < 0) {
		round_failed(w);
	}
}

/* True if both threads use the same fd table. If the kernel does not answer the question, returns
 * false. */
static bool same_table(pid_t a, pid_t b)
{
	return syscall(SYS_kcmp, a, b, KCMP_FILES, 0, 0) == 0;
}

/* Examines the fd tables of all threads of a process. Comparing a thread's table costs as much as
 * an fd, so each thread uses up one of w->round_left. */
static void visit_threads(struct watchdog *w, pid_t pid, pid_t from)
{
	struct tids list = { .more = true };
	pid_t last = pid; /* the thread whose table was examined last */

	while (list.more) {
		list_tids(w, pid, from, &list);
		for (unsigned i = 0; i < list.n; i++) {
			pid_t tid = list.tid[i];
			struct fd_table t = { pid, tid, round_from(w, pid, tid) };
			if (round_pause(w, &t, t.from)) {
				return;
			}
			if (tid != pid && (same_table(tid, pid) || same_table(tid, last))) {
				continue;
			}
			visit_table(w, &t);
			if (w->round_open) {
				return;
			}
			last = tid;
		}
		from = list.n > 0 ? list.tid[list.n - 1] + 1 : 0;
	}
}

/* ---- rounds ---------------------------------------------------------------- */

void watchdog_round_begin(struct watchdog *w)
{
	w->round_left = WATCHDOG_MAX_FDS;
	if (!w->round_open) {
		memset(w->files, 0, sizeof(w->files));
		w->n_files = 0;
		w->round_bytes = 0;
		w->round_blind = false;
		w->round_pid = 0;
		w->round_tid = 0;
		w->round_fd = 0;
	}
	w->round_open = false; /* round_pause() sets it again */
}

void watchdog_round_process(struct watchdog *w, pid_t pid, bool threads)
{
	if (w->round_open || pid < w->round_pid) {
		return; /* the round was interrupted in this check, or has examined this process
		           before */
	}
	pid_t from = pid == w->round_pid ? w->round_tid : 0;
	if (threads && watchdog_threaded(w, pid)) {
		visit_threads(w, pid, from);
	} else if (from <= pid) {
		struct fd_table t = { pid, pid, round_from(w, pid, pid) };
		visit_table(w, &t);
	}
}

void watchdog_round_end(struct watchdog *w)
{
	if (!w->round_open) {
		w->memfd_bytes = w->round_bytes;
		w->blind = w->round_blind;
	}
}

uint64_t watchdog_memfd_bytes(const struct watchdog *w)
{
	return w->round_bytes > w->memfd_bytes ? w->round_bytes : w->memfd_bytes;
}

bool watchdog_memfd_blind(const struct watchdog *w)
{
	return w->round_blind || w->blind;
}
