/* runs.c - lists, opens and removes runs. */
#include "trace/runs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace_file.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"

#define FLAT_SUFFIX "." RECORD_NAME

/* O_NONBLOCK is needed because the file may be a FIFO, and opening one must not block. */
#define RECORD_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

bool runs_id_valid(const char *id, size_t len)
{
	if (len != RUN_ID_SIZE - 1) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? id[i] != '-' : strchr("0123456789abcdef", id[i]) == NULL) {
			return false;
		}
	}
	return true;
}

bool run_entry_from_name(struct run_entry *ret, const char *name)
{
	size_t len = strlen(name);

	if (len < RUN_ID_SIZE - 1 || !runs_id_valid(name, RUN_ID_SIZE - 1)) {
		return false;
	}
	struct run_entry e = { .has_dir = name[RUN_ID_SIZE - 1] == '\0',
		               .has_flat = strcmp(name + RUN_ID_SIZE - 1, FLAT_SUFFIX) == 0 };
	memcpy(e.id, name, RUN_ID_SIZE - 1);
	if (!e.has_dir && !e.has_flat) {
		return false;
	}
	*ret = e;
	return true;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct run_entry *)a)->id, ((const struct run_entry *)b)->id);
}

static int newest_first(const void *a, const void *b)
{
	const struct run_entry *x = a;
	const struct run_entry *y = b;

	return x->mtime != y->mtime ? (x->mtime < y->mtime ? 1 : -1) : strcmp(x->id, y->id);
}

static int add_entry(struct runs *r, const char *name)
{
	struct run_entry e;

	if (!run_entry_from_name(&e, name)) {
		return 0;
	}
	if (r->n >= MAX_RUNS) {
		r->cut = true;
		return 0;
	}
	if (!ARRAY_MORE(r->v, r->n)) {
		return -1;
	}
	r->v[r->n++] = e;
	return 0;
}

/* Merges the two names that a run has while its directory exists but does not yet contain the
 * record. */
static void merge_names(struct runs *r)
{
	size_t kept = 0;

	if (r->n > 0) {
		qsort(r->v, r->n, sizeof(r->v[0]), by_id);
	}
	for (size_t i = 0; i < r->n; i++) {
		if (kept > 0 && strcmp(r->v[kept - 1].id, r->v[i].id) == 0) {
			r->v[kept - 1].has_dir |= r->v[i].has_dir;
			r->v[kept - 1].has_flat |= r->v[i].has_flat;
		} else {
			r->v[kept++] = r->v[i];
		}
	}
	r->n = kept;
}

static int runs_list(struct runs *r, struct ssb_error *err)
{
	int fd = openat(r->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		int error = errno;
		own_close(&fd);
		return ssb_fail(err, SSB_E_SYS, error, "runs", "cannot list the runs");
	}
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (add_entry(r, e->d_name) != 0) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "runs", "out of memory");
		}
	}
	merge_names(r);
	return 0;
}

int runs_open_some(struct runs *ret, const char *state_dir, struct ssb_error *err)
{
	struct runs r = RUNS_NONE;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/runs", state_dir) >= (int)sizeof(path)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "runs",
		                "the path of the state directory is too long");
	}
	r.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.fd < 0 && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, "runs", "cannot open '%s'", path);
	}
	if (r.fd >= 0 && runs_list(&r, err) != 0) {
		runs_done(&r);
		return -1;
	}
	*ret = r;
	return 0;
}

int runs_open(struct runs *ret, const char *state_dir, struct ssb_error *err)
{
	struct runs r = RUNS_NONE;

	if (runs_open_some(&r, state_dir, err) != 0) {
		return -1;
	}
	if (r.cut) {
		runs_done(&r);
		return ssb_fail(err, SSB_E_LIMIT, 0, "runs",
		                "there are more than %d runs; remove old ones with "
		                "'skillsandbox audit prune'",
		                MAX_RUNS);
	}
	*ret = r;
	return 0;
}

void runs_done(struct runs *r)
{
	own_close(&r->fd);
	free(r->v);
	r->v = NULL;
	r->n = 0;
}

int runs_directory(const char *state_dir)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/runs", state_dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return file_mkdirs(path);
}

int runs_news(int dir_fd, uint32_t events)
{
	auto_fd fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	return fd < 0 || inotify_add_watch(fd, link, events) < 0 ? -1 : steal_fd(&fd);
}

void runs_news_take(int fd, runs_news_fn *fn, void *arg)
{
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(bytes + at);
			at += (ssize_t)(sizeof(*e) + e->len);
			fn(arg, e);
		}
	}
}

/* Opens a file. Fails with EINVAL if it is not a regular file. */
static int open_record(int dir_fd, const char *name)
{
	struct stat st;
	auto_fd fd = file_openat2(dir_fd, name, RECORD_FLAGS,
	                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0) {
		return -1;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return steal_fd(&fd);
}

int runs_record(const struct runs *r, const struct run_entry *e)
{
	char name[RUN_ID_SIZE + sizeof(FLAT_SUFFIX)];
	int fd = -1;

	assert(r->fd >= 0 && runs_id_valid(e->id, strlen(e->id)));
	errno = ENOENT;
	/* Try the flat name first: the file may be moved from the flat name to the other one in the
	 * meantime, but never back. */
	if (e->has_flat) {
		snprintf(name, sizeof(name), "%s" FLAT_SUFFIX, e->id);
		fd = open_record(r->fd, name);
	}
	if (fd < 0 && errno == ENOENT) {
		snprintf(name, sizeof(name), "%s/" RECORD_NAME, e->id);
		fd = open_record(r->fd, name);
	}
	return fd;
}

void runs_stat(struct runs *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct run_entry e = r->v[i];
		struct stat st;
		char name[RUN_ID_SIZE + sizeof(FLAT_SUFFIX)];
		int rc = -1;
		if (e.has_flat) { /* must come first, as in runs_record() */
			snprintf(name, sizeof(name), "%s" FLAT_SUFFIX, e.id);
			rc = fstatat(r->fd, name, &st, AT_SYMLINK_NOFOLLOW);
		}
		if (rc != 0) {
			snprintf(name, sizeof(name), "%s/" RECORD_NAME, e.id);
			rc = fstatat(r->fd, name, &st, AT_SYMLINK_NOFOLLOW);
		}
		if (rc == 0 && S_ISREG(st.st_mode)) {
			e.mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
			e.size = (uint64_t)st.st_size;
			r->v[kept++] = e;
		}
	}
	r->n = kept;
	if (r->n > 0) {
		qsort(r->v, r->n, sizeof(r->v[0]), newest_first);
	}
}

bool run_file_live(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
		return errno == EWOULDBLOCK;
	}
	(void)flock(fd, LOCK_UN);
	return false;
}

static int remove_directory(const struct runs *r, const char *id)
{
	int fd = file_openat2(r->fd, id, O_RDONLY | O_DIRECTORY,
	                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	auto_dir dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
		return errno == ENOENT ? 0 : -1;
	}
	/* Removes only files. If the directory contains anything else, that stays, and so does the
	 * directory. */
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			(void)unlinkat(fd, e->d_name, 0);
		}
	}
	return unlinkat(r->fd, id, AT_REMOVEDIR);
}

int runs_remove(const struct runs *r, const struct run_entry *e)
{
	char name[RUN_ID_SIZE + sizeof(FLAT_SUFFIX)];
	auto_fd fd = runs_record(r, e);

	/* Keep the lock until the files are removed, so that no supervisor can lock the record
	 * again. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		errno = EBUSY;
		return -1;
	}
	snprintf(name, sizeof(name), "%s" FLAT_SUFFIX, e->id);
	if (e->has_flat && unlinkat(r->fd, name, 0) != 0 && errno != ENOENT) {
		return -1;
	}
	return e->has_dir ? remove_directory(r, e->id) : 0;
}

/* Recognises a document by its first bytes, because the file may have any name. */
static bool is_document(int fd)
{
	static const char start[] = "{\"schema_version\":";
	char got[sizeof(start) - 1];

	return pread(fd, got, sizeof(got), 0) == (ssize_t)sizeof(got) &&
	       memcmp(got, start, sizeof(got)) == 0;
}

int run_file_open_path(struct run_file *ret, const char *path, struct ssb_error *err)
{
	struct run_file r = RUN_FILE_NONE;
	struct stat st;
	size_t len = strlen(path);
	auto_fd fd = open(path, RECORD_FLAGS | O_CLOEXEC);

	if (fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "",
		                "cannot open '%s'", path);
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || len >= sizeof(r.path)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "'%s' is not a regular file", path);
	}
	if (is_document(fd)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%s' is the document made from a record; name the record itself, "
		                "the file beside it that ends in .jsonl",
		                path);
	}
	memcpy(r.path, path, len + 1);
	r.fd = steal_fd(&fd);
	*ret = r;
	return 0;
}

static const struct run_entry *find_last(struct runs *r, struct ssb_error *err)
{
	runs_stat(r);
	if (r->n == 0) {
		ssb_fail(err, SSB_E_NOT_FOUND, 0, "",
		         "there is no run yet; start one with 'skillsandbox run'");
		return NULL;
	}
	return &r->v[0];
}

static const struct run_entry *find_prefix(const struct runs *r, const char *word,
                                           struct ssb_error *err)
{
	const struct run_entry *found = NULL;
	size_t len = strlen(word);

	for (size_t i = 0; i < r->n; i++) {
		if (strncmp(r->v[i].id, word, len) != 0) {
			continue;
		}
		if (found != NULL) {
			ssb_fail(err, SSB_E_USAGE, 0, "",
			         "'%s' begins the id of more than one run: %s, %s", word, found->id,
			         r->v[i].id);
			return NULL;
		}
		found = &r->v[i];
	}
	if (found == NULL) {
		ssb_fail(err, SSB_E_NOT_FOUND, 0, "",
		         "there is no run '%s'; see 'skillsandbox audit list'", word);
	}
	return found;
}

int run_file_open(struct run_file *ret, const char *state_dir, const char *word,
                  struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	struct run_file r = RUN_FILE_NONE;

	if (strpbrk(word, "/.") != NULL) {
		return run_file_open_path(ret, word, err);
	}
	if (word[0] == '\0') {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "the name of the run is empty; write an id, 'last' or a file");
	}
	if (runs_open(&runs, state_dir, err) != 0) {
		return -1;
	}
	const struct run_entry *e =
	        strcmp(word, "last") == 0 ? find_last(&runs, err) : find_prefix(&runs, word, err);
	if (e == NULL) {
		return -1;
	}
	r.fd = runs_record(&runs, e);
	if (r.fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot open the record of run %s",
		                e->id);
	}
	memcpy(r.id, e->id, sizeof(r.id));
	snprintf(r.path, sizeof(r.path), "%s/runs/%s", state_dir, e->id);
	*ret = r;
	return 0;
}

void run_file_done(struct run_file *r)
{
	own_close(&r->fd);
}
