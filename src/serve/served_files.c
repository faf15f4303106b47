#include "serve/served_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/digest_cache.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "skill/skill.h"

#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define BENEATH    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct walk {
	struct served_files *out;
	struct digest_cache cache;
	bool digests;
	char path[MAX_PATH_BYTES];
};

bool served_path_valid(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");
		if (len == 0 || skill_is_foreign(path, len) || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.')) {
			return false;
		}
		if (path[len] == '\0') {
			return true;
		}
		path += len + 1;
	}
}

static void leave(struct walk *w, const char *why)
{
	struct served_files *f = w->out;

	if (f->n_left < MAX_SKILL_LEFT) {
		f->left[f->n_left] = (struct served_left){ strdup(w->path), why };
	}
	f->n_left++;
}

static struct served_file *add(struct walk *w, bool is_dir)
{
	struct served_files *f = w->out;
	auto_free char *path = strdup(w->path);

	if (f->n_files + !is_dir > MAX_SKILL_FILES ||
	    f->n - f->n_files + is_dir > MAX_SKILL_FILES) {
		f->refused = "it has too many files";
		return NULL;
	}
	struct served_file *v = realloc(f->v, (f->n + 1) * sizeof(*v));
	if (v == NULL || path == NULL) {
		f->v = v != NULL ? v : f->v;
		f->refused = "out of memory";
		return NULL;
	}
	f->v = v;
	v[f->n] = (struct served_file){ .path = steal_ptr(&path), .is_dir = is_dir };
	f->n_files += !is_dir;
	return &v[f->n++];
}

/* ---- one file --------------------------------------------------------------------- */

/* What is read is what counts, whatever the size was before. */
static int hash_file(struct walk *w, int fd, struct served_file *f, const struct stat *before)
{
	auto_buf bytes;
	struct stat after;
	struct digest_record r = digest_record_of(before);

	buf_init(&bytes, MAX_SKILL_FILE);
	if (file_read_all(fd, &bytes) != 0) {
		w->out->refused = errno == EFBIG ? "a file of it is too large" : w->out->refused;
		return -1;
	}
	sha256(bytes.data != NULL ? bytes.data : "", bytes.len, r.hash);
	memcpy(f->hash, r.hash, sizeof(f->hash));
	f->size = bytes.len;
	if (fstat(fd, &after) == 0) {
		struct digest_record then = digest_record_of(&after);
		if (then.size == bytes.len && then.mtime_ns == r.mtime_ns &&
		    then.ctime_ns == r.ctime_ns) {
			digest_cache_add(&w->cache, &r, true);
		}
	}
	return 0;
}

static int look_at(struct walk *w, int dir, const char *name, struct served_file *f)
{
	struct stat st;
	auto_fd fd = openat(dir, name, FILE_FLAGS);

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return -1;
	}
	if ((uint64_t)st.st_size > MAX_SKILL_FILE) {
		w->out->refused = "a file of it is too large";
		return -1;
	}
	struct digest_record r = digest_record_of(&st);
	f->size = r.size;
	if (!w->digests) {
		return 0;
	}
	if (digest_cache_find(&w->cache, &r)) {
		digest_cache_add(&w->cache, &r, false);
		memcpy(f->hash, r.hash, sizeof(f->hash));
		return 0;
	}
	return hash_file(w, fd, f, &st);
}

static void take_file(struct walk *w, int dir, const char *name)
{
	struct served_files *out = w->out;
	struct served_file *f = add(w, false);

	if (f == NULL) {
		return;
	}
	if (look_at(w, dir, name, f) != 0) {
		free(f->path);
		out->n--;
		out->n_files--;
		leave(w, "cannot be read");
		return;
	}
	out->bytes += f->size;
	if (out->bytes > MAX_SKILL_BYTES) {
		out->refused = "its files are too large together";
	}
}

/* ---- directories ------------------------------------------------------------------ */

static void take_directory(struct walk *w, int parent, const char *name, size_t len, int depth);

static const char *kind_of(mode_t mode)
{
	return S_ISLNK(mode)    ? "symlink"
	       : S_ISFIFO(mode) ? "FIFO"
	       : S_ISSOCK(mode) ? "socket"
	                        : "device";
}

static void take_name(struct walk *w, int dir, const char *name, size_t len, int depth)
{
	struct stat st;
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path)) {
		w->out->refused = "a path in it is too long";
		return;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return; /* gone meanwhile */
	}
	if (len > 0) {
		w->path[len++] = '/';
	}
	memcpy(w->path + len, name, n + 1);
	if (skill_is_foreign(name, n)) {
		leave(w, "version control");
	} else if (S_ISREG(st.st_mode)) {
		take_file(w, dir, name);
	} else if (S_ISDIR(st.st_mode)) {
		if (add(w, true) != NULL) {
			take_directory(w, dir, name, len + n, depth + 1);
		}
	} else {
		leave(w, kind_of(st.st_mode));
	}
}

static void take_directory(struct walk *w, int parent, const char *name, size_t len, int depth)
{
	int fd = depth < MAX_SKILL_DEPTH
	                 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
	                 : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
		w->out->refused = depth < MAX_SKILL_DEPTH ? "a directory of it cannot be read"
		                                          : "its directories are too deep";
		return;
	}
	for (const struct dirent *d = readdir(dir); d != NULL && w->out->refused == NULL;
	     d = readdir(dir)) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
			take_name(w, dirfd(dir), d->d_name, len, depth);
		}
	}
	(void)closedir(dir);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct served_file *)a)->path, ((const struct served_file *)b)->path);
}

int served_files_read(struct served_files *ret, const struct skill *skill, const char *state_dir)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));
	auto_fd dir = file_open_nosymlink(skill->dir, O_RDONLY | O_DIRECTORY);
	auto_fd state = state_dir != NULL ? open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat st;

	*ret = (struct served_files){ 0 };
	if (w == NULL || dir < 0 || fstat(dir, &st) != 0) {
		return -1;
	}
	w->out = ret;
	w->digests = state_dir != NULL;
	digest_cache_load(&w->cache, w->digests ? state : -1, &st);
	take_directory(w, dir, ".", 0, 0);
	if (w->digests) {
		/* Runs look at more than we do: what they know stays. */
		digest_cache_store(&w->cache, state, true);
	}
	digest_cache_done(&w->cache);
	if (ret->n > 0) {
		qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
	}
	return 0;
}

void served_files_done(struct served_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].path);
	}
	free(f->v);
	for (size_t i = 0; i < f->n_left && i < MAX_SKILL_LEFT; i++) {
		free(f->left[i].path);
	}
	*f = (struct served_files){ 0 };
}

int served_file_content(const struct skill *skill, const char *path, struct buf *out)
{
	struct stat st;
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	auto_fd fd = dir >= 0 && served_path_valid(path)
	                     ? file_openat2(dir, path, FILE_FLAGS, BENEATH)
	                     : -1;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return -1;
	}
	buf_add(out, "", 0);
	return 0;
}
