/* export.c - copies of the ledger in the files that a policy names.
 *
 * A file is opened and locked before the commit, while the transaction has locked the session,
 * and written after the commit. So the lines of one session appear in their order, and a line
 * appears only if its transaction was committed. No call waits for the lock of a file, because
 * any program may hold it. If the lock is held, or the file cannot be opened or written, the
 * store records the first line that the copy lacks. The next call that can write the file
 * writes the missing lines first. A failed copy only causes a warning: the ledger itself is in
 * the store. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"
#include "session/schema.h"
#include "session/store.h"

#define MAX_OPEN  64
#define MAX_LINES 1024 /* the most missing lines that one call adds to a copy */

struct export_copy {
	int fd;
	const struct row *row;
	size_t item;
	int64_t from;    /* first line missing in the copy */
	struct buf late; /* missing lines, which are written before the new ones */
	bool further;    /* more lines are missing than `late` contains */
	char path[PATH_MAX];
};

struct exports {
	struct export_copy v[MAX_OPEN];
	size_t n;
};

static void warn_export(struct call *c, const char *path, const char *what)
{
	size_t len = strlen(c->warning);

	snprintf(c->warning + len, sizeof(c->warning) - len,
	         "%scannot write the ledger to '%.120s': %s", len > 0 ? "; " : "", path, what);
	store_clean(c->warning);
}

/* Replaces "{session}" by the id, for one file per session. A relative path is below the
 * state directory (the policy allows no ".."). */
static bool expand_path(const struct session_store *ss, const char *to, const char *id,
                        char out[PATH_MAX])
{
	static const char WORD[] = "{session}";
	const char *at = strstr(to, WORD);
	int head = at != NULL ? (int)(at - to) : (int)strlen(to);
	bool absolute = to[0] == '/';
	int n = snprintf(out, PATH_MAX, "%s%s%.*s%s%s", absolute ? "" : ss->owner->state_dir,
	                 absolute ? "" : "/exports/", head, to, at != NULL ? id : "",
	                 at != NULL ? at + sizeof(WORD) - 1 : "");

	if (n <= 0 || n >= PATH_MAX) {
		return false;
	}
	if (!absolute) {
		char *slash = strrchr(out, '/');
		*slash = '\0';
		auto_fd dir = file_mkdirs(out); /* if this fails, open() fails, too */
		*slash = '/';
		(void)dir;
	}
	return true;
}

/* ---- copies that are behind ----------------------------------------------- */

/* Returns the number of the first line that is missing in the copy: the first new line if the copy
 * is up to date. */
static int64_t first_missing(struct call *c, const struct row *row, size_t item)
{
	struct ssb_error why = { 0 };
	int64_t from = (int64_t)(row->lines.len > 0 ? row->first : row->seq);

	(void)store_ask(c->ss, "SELECT seq FROM copies WHERE session = $1 AND item = $2",
	                DB_ARGS(DB_I(row->n), DB_I(item)), &from, &why);
	return from;
}

static void fall_behind(struct call *c, const struct row *row, size_t item, int64_t from)
{
	struct ssb_error why = { 0 };

	(void)db_run(c->ss->db,
	             "INSERT INTO copies (session, item, seq) VALUES ($1, $2, $3)"
	             " ON CONFLICT (session, item) DO UPDATE SET seq = excluded.seq",
	             DB_ARGS(DB_I(row->n), DB_I(item), DB_I(from)), NULL, NULL, &why);
}

/* Records `from` as the first missing line, unless an earlier line is recorded. Called after
 * the commit, while the file is still locked. The record may have changed meanwhile: a process
 * that could not get the lock may have recorded a later line, or this call may have deleted
 * the record. */
static void fall_back(struct call *c, const struct export_copy *to, int64_t from)
{
	struct ssb_error why = { 0 };

	(void)db_run(c->ss->db,
	             "INSERT INTO copies (session, item, seq) VALUES ($1, $2, $3)"
	             " ON CONFLICT (session, item) DO UPDATE SET seq ="
	             " CASE WHEN copies.seq < excluded.seq THEN copies.seq ELSE excluded.seq END",
	             DB_ARGS(DB_I(to->row->n), DB_I(to->item), DB_I(from)), NULL, NULL, &why);
}

struct late {
	struct buf *out;
	int64_t n;
	bool full; /* `out` has no room for the next line */
};

static int add_late(void *arg, const struct db_value *v, size_t n)
{
	struct late *l = arg;

	if (n == 1 && v[0].type == DB_TEXT) {
		l->full = l->out->len > 0 && v[0].n > l->out->cap - l->out->len;
		if (l->full) {
			return 1; /* the next call begins with the line that did not fit */
		}
		buf_add(l->out, v[0].s, v[0].n);
	}
	l->n++;
	return 0;
}

/* Reads the missing lines, from `from` to before `until`, into to->late. */
static void catch_up(struct call *c, struct export_copy *to, size_t item, int64_t from,
                     int64_t until)
{
	struct late l = { .out = &to->late };
	struct ssb_error why = { 0 };

	buf_init(&to->late, STORE_EXPORT);
	(void)db_run(c->ss->db,
	             "SELECT line FROM ledger WHERE n >= $1 AND n < $2 ORDER BY n LIMIT 1024",
	             DB_ARGS(DB_I(SESSION_LINE(to->row->n, from)),
	                     DB_I(SESSION_LINE(to->row->n, until))),
	             add_late, &l, &why);
	to->further = l.n == MAX_LINES || l.full;
	if (to->further) {
		fall_behind(c, to->row, item, from + l.n);
		return;
	}
	(void)db_run(c->ss->db, "DELETE FROM copies WHERE session = $1 AND item = $2",
	             DB_ARGS(DB_I(to->row->n), DB_I(item)), NULL, NULL, &why);
}

/* ---- the files ------------------------------------------------------------ */

/* Opens and locks the file without waiting. Returns NULL on success, otherwise what is wrong. */
static const char *open_locked(const char *path, int *ret_fd)
{
	struct stat st;
	/* O_NONBLOCK: opening a FIFO must not block. */
	auto_fd fd =
	        open(path,
	             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	             0600);

	if (fd < 0 || fstat(fd, &st) != 0) {
		return strerror(errno);
	}
	if (!S_ISREG(st.st_mode)) {
		return "not a regular file";
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		return "another process has locked it";
	}
	*ret_fd = steal_fd(&fd);
	return NULL;
}

/* Returns why the copy cannot be opened, or NULL. Several sessions may use the same file, and then
 * share its lock. */
static const char *open_copy(const struct exports *e, const char *path, int *ret_fd)
{
	for (size_t i = 0; i < e->n; i++) {
		if (strcmp(e->v[i].path, path) == 0) {
			*ret_fd = fcntl(e->v[i].fd, F_DUPFD_CLOEXEC, 3);
			return *ret_fd >= 0 ? NULL : strerror(errno);
		}
	}
	return open_locked(path, ret_fd);
}

static void open_one(struct call *c, struct exports *e, const struct row *row, size_t item)
{
	const char *to = row->s.policy->exports[item].to;
	int64_t until = (int64_t)(row->lines.len > 0 ? row->first : row->seq);
	int64_t from = first_missing(c, row, item);
	struct export_copy *copy = &e->v[e->n];
	const char *why = NULL;

	if (from >= until && row->lines.len == 0) {
		return;
	}
	if (row->lines.failed) {
		/* The missing lines are in the store, where the next call reads them. */
		why = "more lines than one call can write; the next call writes the rest";
	} else if (e->n == MAX_OPEN) {
		why = "too many files at once";
	} else if (!expand_path(c->ss, to, row->s.id, copy->path)) {
		why = "the name is too long";
	} else {
		why = open_copy(e, copy->path, &copy->fd);
	}
	if (why != NULL) {
		warn_export(c, to, why);
		fall_behind(c, row, item, from);
		return;
	}
	copy->row = row;
	copy->item = item;
	copy->from = from;
	e->n++;
	if (from < until) {
		catch_up(c, copy, item, from, until);
	}
}

/* Returns true if the session has exports and may have lines for them. The copy may be behind even
 * if this call adds no line. */
static bool is_exported(struct call *c, const struct row *row)
{
	const struct session_policy *p = row->s.policy;

	return p != NULL && p->audit_enabled && p->n_exports > 0 &&
	       (row->lines.len > 0 || row == call_own(c));
}

struct exports *export_open(struct call *c)
{
	struct exports *e = NULL;

	assert(c->open);
	for (size_t i = 0; i < c->n + c->n_others; i++) {
		const struct row *row = call_row(c, i);
		if (!is_exported(c, row)) {
			continue;
		}
		e = e != NULL ? e : calloc(1, sizeof(*e));
		if (e == NULL) {
			warn_export(c, row->s.id, "out of memory");
			return NULL;
		}
		for (size_t x = 0; x < row->s.policy->n_exports; x++) {
			if (row->s.policy->exports[x].kind == EXPORT_FILE) {
				open_one(c, e, row, x);
			}
		}
	}
	return e;
}

/* Appends `lines` to the file. On failure, removes what was written: after half a line, the next
 * line would be unreadable, too. */
static int write_lines(struct call *c, const struct export_copy *to, const struct buf *lines)
{
	off_t end = lseek(to->fd, 0, SEEK_END);

	if (lines->failed || end < 0) {
		warn_export(c, to->path,
		            lines->failed ? "more lines than one call can write; the next call "
		                            "writes the rest"
		                          : strerror(errno));
		return -1;
	}
	if (file_write_all(to->fd, lines->data, lines->len) != 0) {
		int why = errno;
		(void)!ftruncate(to->fd, end);
		warn_export(c, to->path, strerror(why));
		return -1;
	}
	return 0;
}

static void write_copy(struct call *c, const struct export_copy *to)
{
	if ((to->late.len > 0 || to->late.failed) && write_lines(c, to, &to->late) != 0) {
		fall_back(c, to, to->from);
	} else if (!to->further && write_lines(c, to, &to->row->lines) != 0) {
		fall_back(c, to, (int64_t)to->row->first);
	}
}

void export_write(struct call *c, struct exports *e)
{
	for (size_t i = 0; e != NULL && i < e->n; i++) {
		write_copy(c, &e->v[i]);
	}
	export_drop(e);
}

void export_drop(struct exports *e)
{
	for (size_t i = 0; e != NULL && i < e->n; i++) {
		own_close(&e->v[i].fd);
		buf_done(&e->v[i].late);
	}
	free(e);
}
