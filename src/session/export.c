/* export.c - copies of the ledger in the files that a policy names.
 *
 * A file is opened and locked while the transaction still holds the session, and
 * written after it is committed: so the lines of one session are there in their
 * order, and none that did not happen. It is a copy: where it fails the call is
 * as good, with a warning; the ledger itself is in the store. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/file.h"
#include "session/store.h"

#define MAX_OPEN     64
#define LOCK_TRIES   100
#define LOCK_WAIT_NS 1000000L

struct exports {
	struct {
		int fd;
		const struct row *row;
		char path[PATH_MAX];
	} v[MAX_OPEN];
	size_t n;
};

static void warn(struct call *c, const char *path, const char *what)
{
	snprintf(c->warning, sizeof(c->warning), "cannot write the ledger to '%.120s': %s", path,
	         what);
	store_clean(c->warning);
}

/* "{session}" in it is the id: a file of its own for each. What is not absolute is
 * beneath the state directory (the policy has no ".."). */
static bool expand(const struct sessions *ss, const char *to, const char *id, char out[PATH_MAX])
{
	static const char WORD[] = "{session}";
	const char *at = strstr(to, WORD);
	int head = at != NULL ? (int)(at - to) : (int)strlen(to);
	bool absolute = to[0] == '/';
	int n = snprintf(out, PATH_MAX, "%s%s%.*s%s%s", absolute ? "" : ss->state_dir,
	                 absolute ? "" : "/exports/", head, to, at != NULL ? id : "",
	                 at != NULL ? at + sizeof(WORD) - 1 : "");

	if (n <= 0 || n >= PATH_MAX) {
		return false;
	}
	if (!absolute) {
		char *slash = strrchr(out, '/');
		*slash = '\0';
		auto_fd dir = file_mkdirs(out); /* where that fails, so does open() */
		*slash = '/';
		(void)dir;
	}
	return true;
}

/* Whoever holds the lock is about to write a few lines; a kill does not wait for
 * more than that. */
static void lock(int fd)
{
	struct timespec wait = { .tv_nsec = LOCK_WAIT_NS };

	for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
		(void)nanosleep(&wait, NULL);
	}
}

static void open_one(struct call *c, struct exports *e, const struct row *row, const char *to)
{
	char path[PATH_MAX];
	struct stat st;

	if (e->n == MAX_OPEN || !expand(c->ss, to, row->s.id, path)) {
		warn(c, to, e->n == MAX_OPEN ? "too many files at once" : "the name is too long");
		return;
	}
	for (size_t i = 0; i < e->n; i++) {
		if (strcmp(e->v[i].path, path) == 0) {
			int again = fcntl(e->v[i].fd, F_DUPFD_CLOEXEC, 3);
			if (again < 0) {
				warn(c, path, strerror(errno));
				return;
			}
			e->v[e->n].fd = again; /* the same lock */
			e->v[e->n].row = row;
			memcpy(e->v[e->n++].path, path, sizeof(path));
			return;
		}
	}
	/* A FIFO must not hold us up. */
	auto_fd fd =
	        open(path,
	             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	             0600);
	if (fd < 0 || fstat(fd, &st) != 0) {
		warn(c, path, strerror(errno));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		warn(c, path, "not a regular file");
		return;
	}
	lock(fd);
	e->v[e->n].fd = steal_fd(&fd);
	e->v[e->n].row = row;
	memcpy(e->v[e->n++].path, path, sizeof(path));
}

struct exports *export_open(struct call *c)
{
	struct exports *e = NULL;

	for (size_t i = 0; i < c->n + c->n_others; i++) {
		const struct row *row = i < c->n ? &c->chain[i] : c->others[i - c->n];
		if (row->lines.len == 0) {
			continue;
		}
		e = e != NULL ? e : calloc(1, sizeof(*e));
		if (e == NULL) {
			warn(c, row->s.id, "out of memory");
			return NULL;
		}
		for (size_t x = 0; x < row->s.policy->n_exports; x++) {
			if (row->s.policy->exports[x].kind == EXPORT_FILE) {
				open_one(c, e, row, row->s.policy->exports[x].to);
			}
		}
	}
	return e;
}

/* A part of a line is cut off again: what follows would not be one either. */
static void write_one(struct call *c, int fd, const char *path, const struct buf *lines)
{
	off_t end = lseek(fd, 0, SEEK_END);

	if (lines->failed || end < 0) {
		warn(c, path, lines->failed ? "too many lines at once" : strerror(errno));
	} else if (file_write_all(fd, lines->data, lines->len) != 0) {
		int why = errno;
		(void)!ftruncate(fd, end);
		warn(c, path, strerror(why));
	}
}

void export_write(struct call *c, struct exports *e)
{
	for (size_t i = 0; e != NULL && i < e->n; i++) {
		write_one(c, e->v[i].fd, e->v[i].path, &e->v[i].row->lines);
	}
	export_drop(e);
}

void export_drop(struct exports *e)
{
	for (size_t i = 0; e != NULL && i < e->n; i++) {
		own_close(&e->v[i].fd);
	}
	free(e);
}
