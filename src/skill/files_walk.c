/* files_walk.c - walks a skill's directory: the limits of each use, and the order in which entries
 * are read. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "skill/files_priv.h"
#include "skill/skill.h"

static const struct files_rules RULES[] = {
	[FILES_APPROVE] = { .files = MAX_PINNED_FILES,
	                    .dirs = MAX_PINNED_DIRS,
	                    .path_bytes = MAX_PINNED_PATHS,
	                    .bytes = MAX_PINNED_BYTES,
	                    .file_bytes = UINT64_MAX,
	                    .read = UINT64_MAX,
	                    .whole = true,
	                    .pinned = true },
	[FILES_RECORD] = { .files = MAX_RECORDED_FILES,
	                   .dirs = MAX_RECORDED_FILES,
	                   .path_bytes = MAX_RECORDED_PATHS,
	                   .bytes = UINT64_MAX,
	                   .file_bytes = UINT64_MAX,
	                   .read = MAX_RECORDED_READ,
	                   .small_first = true },
	[FILES_RECORD_SMALL] = { .files = SMALL_SKILL_FILES,
	                         .dirs = SMALL_SKILL_FILES,
	                         .path_bytes = MAX_RECORDED_PATHS,
	                         .bytes = SMALL_SKILL_BYTES,
	                         .file_bytes = SMALL_SKILL_BYTES,
	                         .read = SMALL_SKILL_BYTES,
	                         .whole = true,
	                         .local = true },
	[FILES_SERVE] = { .files = MAX_SKILL_FILES,
	                  .dirs = MAX_SKILL_FILES + 1, /* including the skill's own */
	                  .path_bytes = MAX_RECORDED_PATHS,
	                  .bytes = MAX_SKILL_BYTES,
	                  .file_bytes = MAX_SKILL_FILE,
	                  .read = UINT64_MAX,
	                  .whole = true,
	                  .served = true },
};

/* ---- directories ------------------------------------------------------------------ */

static size_t depth_of(const char *path)
{
	size_t n = path[0] != '\0';

	for (; *path != '\0'; path++) {
		n += *path == '/';
	}
	return n;
}

/* Adds the current directory as an entry. Only an empty directory is an entry; for the server,
 * every directory is one. */
static void add_directory(struct files_walk *w)
{
	struct skill_file *f = w->rules->served ? files_add_entry(w, SKILL_DIR_MODE, NULL)
	                                        : files_add(w, SKILL_DIR_MODE, NULL);

	if (f != NULL) {
		f->dir = true;
		sha256("", 0, f->sha256);
	}
}

static void take_directory(struct files_walk *w)
{
	if (++w->n_dirs > w->rules->dirs) {
		files_fail_limit(w, "directories", w->rules->dirs, "");
		return;
	}
	if (w->rules->served && w->path[0] != '\0') {
		add_directory(w);
	}
	files_queue(w, w->pass);
}

/* True for a directory of version control that is left out: for an approval at the top of the
 * skill, for the server anywhere. */
static bool is_left_out(const struct files_walk *w, const char *name, size_t n, size_t dir_len)
{
	return skill_is_foreign(name, n) &&
	       (w->rules->served || (w->rules->pinned && dir_len == 0 && !w->with_foreign));
}

/* Handles one name of a directory whose path has `len` bytes. */
static void take_name(struct files_walk *w, int dir, const char *name, size_t len)
{
	struct stat st;
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path)) {
		files_fail(w, SSB_E_LIMIT, 0, "a path in it has more bytes than the limit of %d",
		           MAX_PATH_BYTES);
		return;
	}
	if (len > 0) {
		w->path[len++] = '/';
	}
	memcpy(w->path + len, name, n + 1);
	if (is_left_out(w, name, n, len)) {
		if (w->rules->served) {
			files_add_left_out(w, "version control");
		}
		return;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (w->rules->pinned) {
			files_fail_sys(w, errno);
		}
		return; /* removed in the meantime */
	}
	if (w->rules->local && st.st_dev != w->dev) {
		files_fail_limit(w, "file systems", 1, "");
	} else if (S_ISREG(st.st_mode)) {
		files_take(w, dir, name, &st);
	} else if (S_ISLNK(st.st_mode)) {
		files_take_symlink(w, dir, name, &st);
	} else if (S_ISDIR(st.st_mode)) {
		take_directory(w);
	} else {
		files_take_special(w, st.st_mode);
	}
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names and keeps the first `most`. */
static void keep_first(struct files_walk *w, struct string_list *names, size_t most)
{
	if (names->n > 0) {
		qsort((void *)names->v, names->n, sizeof(*names->v), by_string);
	}
	if (names->n > most) {
		files_fail(w, SSB_E_LIMIT, 0,
		           "a directory in it has more names than the limit of %zu", most);
	}
	while (names->n > most) {
		free(names->v[--names->n]);
		names->v[names->n] = NULL;
	}
}

/* Reads the names of a directory and sorts them, so that the order of the directory does not
 * matter, even if it has more names than are kept. Returns false if the directory is large and this
 * is the pass for small ones. */
static bool read_names(struct files_walk *w, int dir, struct string_list *names)
{
	size_t most = w->rules->files + w->rules->dirs;
	struct entries entries;

	entries_init(&entries, dir);
	for (const struct dirent64 *d = entries_next(&entries); d != NULL && !files_stopped(w);
	     d = entries_next(&entries)) {
		if (w->rules->small_first && w->pass == PASS_SMALL && names->n == MAX_SMALL_NAMES) {
			return false;
		}
		if (names->n == 2 * most) {
			keep_first(w, names, most);
		}
		if (string_list_add(names, d->d_name, SIZE_MAX) != 0) {
			files_fail_memory(w);
		}
	}
	if (errno != 0 && !w->full) {
		files_fail_sys(w, errno);
	}
	keep_first(w, names, most);
	return true;
}

/* Reads the entries of the directory at the current path. Its files are read now; its directories
 * are put into the queue. Takes `fd_in`. */
static void visit_directory(struct files_walk *w, int fd_in, const struct stat *st)
{
	AUTO(string_list_done) struct string_list names = { 0 };
	auto_fd fd = fd_in;
	size_t len = strlen(w->path);

	if (depth_of(w->path) >= MAX_SKILL_DEPTH) {
		files_fail(w, SSB_E_LIMIT, 0, "its directories are deeper than the limit of %d",
		           MAX_SKILL_DEPTH);
		return;
	}
	if (w->rules->pinned && !files_mark(w, st)) {
		return;
	}
	if (!read_names(w, fd, &names)) {
		files_queue(w, PASS_LARGE);
	} else if (names.n == 0 && len > 0 && !w->rules->served && !w->full) {
		add_directory(w);
	}
	for (size_t i = 0; i < names.n && !files_stopped(w); i++) {
		/* The kernel may list a name twice if the directory changes while it is read. */
		if (i == 0 || strcmp(names.v[i - 1], names.v[i]) != 0) {
			take_name(w, fd, names.v[i], len);
		}
	}
}

/* Handles a path of the queue: a directory, or a large file. */
static void visit_path(struct files_walk *w, const char *path)
{
	struct stat st;
	auto_fd fd = file_openat2(w->root, path[0] != '\0' ? path : ".", FILES_OPEN, FILES_BENEATH);

	memcpy(w->path, path, strlen(path) + 1);
	if (fd < 0 || fstat(fd, &st) != 0) {
		files_fail_sys(w, errno);
	} else if (S_ISDIR(st.st_mode)) {
		visit_directory(w, steal_fd(&fd), &st);
	} else if (S_ISREG(st.st_mode)) {
		files_take(w, -1, NULL, &st);
	} else {
		files_fail_changed(w);
	}
}

/* ---- the whole directory ---------------------------------------------------------- */

/* Visits the queued paths level by level, so that deep directories do not delay the top of the
 * skill. Small ones come before large ones, so that no single directory or file uses up the
 * limits. */
static void walk_queues(struct files_walk *w)
{
	for (w->pass = PASS_SMALL; w->pass < PASSES; w->pass++) {
		for (size_t i = 0; i < w->queue[w->pass].n && !files_stopped(w); i++) {
			visit_path(w, w->queue[w->pass].v[i]);
		}
		string_list_done(&w->queue[w->pass]);
	}
}

/* Reads the directories of version control, too. Must be called if the remaining files are too
 * large to be copied: the skill will then run from its own directory, where it can see the
 * directories of version control. */
static void walk_foreign(struct files_walk *w)
{
	w->with_foreign = true;
	w->pass = PASS_SMALL;
	for (size_t i = 0; i < N_SKILL_FOREIGN && !w->full; i++) {
		if (faccessat(w->root, SKILL_FOREIGN[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			take_name(w, w->root, SKILL_FOREIGN[i], 0);
		} else if (errno != ENOENT) {
			files_fail_sys(w, errno);
		}
	}
	walk_queues(w);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct skill_file *)a)->path, ((const struct skill_file *)b)->path);
}

/* True for a file system on this machine's disks or in its memory: it does not wait for another
 * program. */
static bool is_local(int fd)
{
	static const long TYPES[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC,
		                      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC };
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       ARRAY_HAS(type, TYPES, ARRAY_LEN(TYPES), fs.f_type == *type);
}

static void walk_all(struct files_walk *w)
{
	const struct files_wish *wish = w->wish;
	struct stat st;

	if (fstat(w->root, &st) != 0) {
		files_fail_sys(w, errno);
		return;
	}
	if (w->rules->local && !is_local(w->root)) {
		files_fail(w, SSB_E_LIMIT, 0,
		           "it is on a file system that may block the reader; move it to a local "
		           "one, such as ext4");
		return;
	}
	w->dev = st.st_dev;
	digest_cache_load(&w->cache, wish->state_fd, &st);
	take_directory(w);
	walk_queues(w);
	if (w->rules->pinned && !w->full && w->out->bytes > SNAPSHOT_BYTES) {
		walk_foreign(w);
	}
	if (wish->state_fd >= 0 && !wish->names_only) {
		/* Only a run (FILES_RECORD) reads all the files. The other purposes read fewer, so
		 * they must keep the run's records in the cache. */
		digest_cache_store(&w->cache, wish->state_fd,
		                   w->failed || wish->use != FILES_RECORD);
	}
	digest_cache_done(&w->cache);
	if (w->out->n > 0) {
		qsort(w->out->v, w->out->n, sizeof(*w->out->v), by_path);
	}
	if (wish->marks != NULL) {
		marks_sort(wish->marks);
	}
}

int skill_files_read(int dir_fd, const struct files_wish *wish, struct skill_files *out,
                     struct ssb_error *err)
{
	auto_free struct files_walk *w = calloc(1, sizeof(*w));
	auto_free char *chunk = malloc(FILES_CHUNK);

	assert(wish->marks == NULL || (wish->use == FILES_APPROVE && wish->marks->n == 0));
	*out = (struct skill_files){ 0 };
	if (w == NULL || chunk == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
	}
	w->rules = &RULES[wish->use];
	w->wish = wish;
	w->out = out;
	w->err = err;
	w->chunk = chunk;
	w->root = dir_fd;
	walk_all(w);
	if (w->failed) {
		return -1;
	}
	skill_files_digest(out, out->tree);
	return 0;
}
