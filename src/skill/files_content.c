/* files_content.c - reads one entry of a skill's directory: checks its limits and its times, and
 * hashes its bytes. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "skill/files_priv.h"

#define WHERE "skill"

/* ---- failures --------------------------------------------------------------------- */

void files_fail(struct files_walk *w, enum ssb_code code, int sys_errno, const char *fmt, ...)
{
	char text[sizeof(w->err->text)];
	va_list ap;

	if (!w->failed) {
		va_start(ap, fmt);
		(void)vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		(void)ssb_fail(w->err, code, sys_errno, WHERE, "%s", text);
	}
	w->failed = true;
	w->full = w->full || w->rules->whole;
}

void files_fail_sys(struct files_walk *w, int error)
{
	if (w->rules->served) { /* an agent reads this message, so it contains no hostile name */
		files_fail(w, SSB_E_SYS, error, "one of its directories cannot be read");
		return;
	}
	files_fail(w, SSB_E_SYS, error, "'%.200s'", w->path[0] != '\0' ? w->path : ".");
}

static void fail_pin(struct files_walk *w, const char *why)
{
	files_fail(w, SSB_E_POLICY, 0, "'%.200s' %s", w->path, why);
}

void files_fail_changed(struct files_walk *w)
{
	fail_pin(w, "changed while it was read; try again");
}

void files_fail_limit(struct files_walk *w, const char *what, uint64_t most, const char *unit)
{
	files_fail(w, SSB_E_LIMIT, 0, "it has more %s than the limit of %ju%s", what,
	           (uintmax_t)most, unit);
	w->full = true;
}

void files_fail_memory(struct files_walk *w)
{
	files_fail(w, SSB_E_NOMEM, 0, "out of memory");
	w->full = true;
}

bool files_stopped(struct files_walk *w)
{
	if (w->wish->stop != NULL && *w->wish->stop != 0 && !w->failed) {
		files_fail(w, SSB_E_LIMIT, 0, "reading it took too long");
	}
	w->full = w->full || (w->wish->stop != NULL && *w->wish->stop != 0);
	return w->full;
}

/* ---- entries ---------------------------------------------------------------------- */

static bool count_path(struct files_walk *w, size_t n)
{
	w->path_bytes += n;
	if (w->path_bytes > w->rules->path_bytes) {
		files_fail_limit(w, "bytes of names", w->rules->path_bytes, "");
		return false;
	}
	return true;
}

struct skill_file *files_add_entry(struct files_walk *w, unsigned mode, const char *link)
{
	if (!count_path(w, strlen(w->path) + (link != NULL ? strlen(link) : 0))) {
		return NULL;
	}
	struct skill_file f = { .path = strdup(w->path),
		                .link = link != NULL ? strdup(link) : NULL,
		                .mode = mode & 07777 };
	if (f.path == NULL || (link != NULL && f.link == NULL) ||
	    !ARRAY_MORE(w->out->v, w->out->n)) {
		skill_file_done(&f);
		files_fail_memory(w);
		return NULL;
	}
	w->out->v[w->out->n] = f;
	return &w->out->v[w->out->n++];
}

struct skill_file *files_add(struct files_walk *w, unsigned mode, const char *link)
{
	if (w->n_files == w->rules->files) {
		files_fail_limit(w, "files", w->rules->files, "");
		return NULL;
	}
	w->n_files++;
	return files_add_entry(w, mode, link);
}

void files_add_left_out(struct files_walk *w, const char *why)
{
	if (w->out->n_left_out++ < MAX_SKILL_LEFT) {
		struct skill_file *f = files_add_entry(w, 0, NULL);
		if (f != NULL) {
			f->no_digest = why;
		}
	}
}

/* ---- marks ------------------------------------------------------------------------ */

/* If the file's last change is so recent that another change could get the same time, waits a
 * moment. If all waits together would exceed MAX_MARK_WAIT, the files are being changed, and this
 * function fails. */
bool files_mark(struct files_walk *w, const struct stat *st)
{
	int64_t ns = w->wish->marks != NULL ? mark_young(st) : 0;
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (ns > MAX_MARK_WAIT - w->waited) {
		files_fail_changed(w);
		return false;
	}
	if (ns > 0) {
		w->waited += ns;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
	if (w->wish->marks != NULL &&
	    marks_add(w->wish->marks, w->path[0] != '\0' ? w->path : ".", st) != 0) {
		files_fail_memory(w);
		return false;
	}
	return true;
}

/* ---- regular files ---------------------------------------------------------------- */

/* True if the file has fewer blocks than its bytes need, so that it may be sparse. */
static bool lacks_blocks(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 + MAX_PINNED_HOLES < (uint64_t)st->st_size;
}

/* True if the file has large holes: they cost the author nothing, but a copy of them could fill a
 * disk. A few holes of one page are accepted, because linkers write such files. Compressed files
 * have few blocks, too, but no holes. */
static bool is_sparse(int fd, const struct stat *st)
{
	bool sparse = lacks_blocks(st) && lseek(fd, 0, SEEK_HOLE) < st->st_size;

	return sparse || lseek(fd, 0, SEEK_SET) != 0;
}

/* Hashes all bytes up to the end of the file. Returns 0, or -1 with errno. An errno of 0 means that
 * the failure is already recorded. */
static int hash_content(struct files_walk *w, int fd, uint64_t size, uint8_t ret[SHA256_BYTES],
                        uint64_t *ret_size)
{
	struct sha256 s;
	uint64_t done = 0;

	sha256_init(&s);
	for (;;) {
		ssize_t n = read(fd, w->chunk, FILES_CHUNK);
		if (files_stopped(w)) {
			errno = 0;
			return -1;
		}
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -1;
		}
		done += (uint64_t)n;
		w->read += (uint64_t)n;
		if (n == 0 || (w->rules->pinned && done > size)) {
			break;
		}
		if (done > w->rules->file_bytes) {
			files_fail_limit(w, "bytes in one file", w->rules->file_bytes >> 20,
			                 " MiB");
		} else if (w->read > w->rules->read) {
			files_fail_limit(w, "bytes in all its files", w->rules->read >> 20, " MiB");
		}
		if (w->full) {
			errno = 0;
			return -1;
		}
		sha256_update(&s, w->chunk, (size_t)n);
	}
	sha256_final(&s, ret);
	*ret_size = done;
	return 0;
}

static bool same_record(const struct digest_record *a, const struct digest_record *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Hashes an open file. A file that changes while it is hashed cannot be pinned and is not put into
 * the cache. */
static int hash_file(struct files_walk *w, int fd, struct digest_record *r)
{
	struct stat after;
	uint64_t size = 0;

	if (hash_content(w, fd, r->size, r->hash, &size) != 0 || fstat(fd, &after) != 0) {
		return -1;
	}
	struct digest_record then = digest_record_of(&after);
	if (size == r->size && same_record(r, &then)) {
		digest_cache_add(&w->cache, r, true);
	} else if (w->rules->pinned) {
		files_fail_changed(w);
		errno = 0;
		return -1;
	}
	r->size = size;
	return 0;
}

/* True if the content of this open file can be pinned; otherwise records why not. */
static bool can_pin(struct files_walk *w, int fd, const struct stat *st)
{
	if (is_sparse(fd, st)) {
		fail_pin(w, "is a sparse file; a skill with such a file cannot be approved");
	} else if (w->wish->marks != NULL && mark_has_writer(fd)) {
		fail_pin(w, "is open for writing, so its content is not certain; close it and try "
		            "again");
	} else {
		return files_mark(w, st);
	}
	return false;
}

/* Fills `r` from the open file. Returns 0, or -1 with errno. An errno of 0 means that the failure
 * is already recorded. */
static int read_record(struct files_walk *w, int fd, struct digest_record *r, struct stat *st)
{
	if (fd < 0 || fstat(fd, st) != 0) {
		return -1;
	}
	if (!S_ISREG(st->st_mode)) {
		if (w->rules->pinned) {
			files_fail_changed(w);
			errno = 0;
		} else {
			errno = EINVAL;
		}
		return -1;
	}
	*r = digest_record_of(st);
	if (w->rules->pinned && !can_pin(w, fd, st)) {
		errno = 0;
		return -1;
	}
	if (digest_cache_find(&w->cache, r)) {
		digest_cache_add(&w->cache, r, false);
		w->out->n_cached++;
		return 0;
	}
	return hash_file(w, fd, r);
}

static bool fits_limits(struct files_walk *w, uint64_t size)
{
	if (size > w->rules->file_bytes) {
		files_fail_limit(w, "bytes in one file", w->rules->file_bytes >> 20, " MiB");
	} else if (size > w->rules->bytes || w->out->bytes > w->rules->bytes - size) {
		files_fail_limit(w, "bytes in all its files", w->rules->bytes >> 20, " MiB");
	} else {
		return true;
	}
	return false;
}

static void take_unreadable(struct files_walk *w, const struct stat *st, int error)
{
	if (error == 0 && w->rules->whole) {
		assert(w->failed);
		return;
	}
	if (w->rules->pinned) {
		files_fail_sys(w, error);
	} else if (w->rules->served) {
		files_add_left_out(w, "cannot be read");
	} else {
		struct skill_file *f = files_add(w, st->st_mode, NULL);
		if (f != NULL) {
			f->no_digest = "cannot be read";
		}
	}
}

static void take_record(struct files_walk *w, const struct stat *st, const struct digest_record *r)
{
	struct skill_file *f = files_add(w, st->st_mode, NULL);

	if (f != NULL) {
		memcpy(f->sha256, r->hash, sizeof(f->sha256));
		f->size = r->size;
		w->out->bytes += r->size;
	}
}

void files_queue(struct files_walk *w, enum files_pass pass)
{
	if (count_path(w, strlen(w->path)) &&
	    string_list_add(&w->queue[pass], w->path, SIZE_MAX) != 0) {
		files_fail_memory(w);
	}
}

void files_take(struct files_walk *w, int dir, const char *name, struct stat *st)
{
	struct digest_record r = digest_record_of(st);
	bool cached = digest_cache_find(&w->cache, &r);

	if (!fits_limits(w, r.size)) {
		return;
	}
	if (w->wish->names_only) {
		take_record(w, st, &r);
		return;
	}
	/* If the caller wants marks, each file is opened even if its digest is known, to find
	 * processes that have it open for writing. */
	if (cached && w->wish->marks == NULL && !(w->rules->pinned && lacks_blocks(st))) {
		digest_cache_add(&w->cache, &r, false);
		w->out->n_cached++;
		take_record(w, st, &r);
		return;
	}
	if (w->rules->small_first && w->pass == PASS_SMALL && st->st_size > MAX_SMALL_FILE) {
		files_queue(w, PASS_LARGE);
		return;
	}
	auto_fd fd = name != NULL ? openat(dir, name, FILES_OPEN)
	                          : file_openat2(w->root, w->path, FILES_OPEN, FILES_BENEATH);
	if (read_record(w, fd, &r, st) != 0) {
		take_unreadable(w, st, errno);
	} else if (fits_limits(w, r.size)) { /* it may have grown since it was listed */
		take_record(w, st, &r);
	}
}

/* ---- symlinks, and entries without content ---------------------------------------- */

/* True if the symlink stays inside the skill's directory. The kernel follows it as it would for the
 * skill. */
static bool stays_inside(const struct files_walk *w)
{
	auto_fd fd =
	        file_openat2(w->root, w->path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	return fd >= 0 || errno == ENOENT;
}

void files_take_symlink(struct files_walk *w, int dir, const char *name, const struct stat *st)
{
	char text[MAX_PATH_BYTES];

	if (w->rules->served) {
		files_add_left_out(w, "symlink");
		return;
	}
	if (w->rules->pinned && !files_mark(w, st)) {
		return;
	}
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);
	if (n < 0) {
		take_unreadable(w, st, errno);
		return;
	}
	text[n] = '\0';
	if (w->rules->pinned && !stays_inside(w)) {
		fail_pin(w, "is a symlink that leads out of the skill's directory; such a "
		            "skill cannot be approved");
		return;
	}
	struct skill_file *f = files_add(w, SKILL_LINK_MODE, text);
	if (f != NULL) {
		sha256(text, (size_t)n, f->sha256);
	}
}

void files_take_special(struct files_walk *w, mode_t mode)
{
	const char *kind = S_ISFIFO(mode) ? "FIFO" : S_ISSOCK(mode) ? "socket" : "device";
	char why[80];

	if (w->rules->served) {
		files_add_left_out(w, kind);
	} else if (w->rules->pinned) {
		snprintf(why, sizeof(why), "is a %s; a skill with a %s cannot be approved", kind,
		         kind);
		fail_pin(w, why);
	}
}
