/* observe_deep.c - follows a path name by name, from an fd of a directory.
 *
 * This is needed in three cases: a directory can be reached only by an fd, because its path is too
 * long for the kernel to return, or because it was removed; the skill has already entered a
 * directory whose parent no user may enter; or the kernel does not follow a path beneath a root,
 * because another process renames at the same time. If the directory that is reached at the end has
 * a path again, that path is joined with the rest. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "observe/observe.h"
#include "base/own.h"
#include "os/file.h"

/* Writes to `out` the directory's path joined with `rest`. Returns false if the result is too long
 * or the directory has no path. `named` must be true if the directory was just found by its name:
 * then "(deleted)" at the end of its path is part of the name. */
static bool put_path(int dir, const char *rest, bool named, char out[PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t n = file_path(dir, path, sizeof(path));
	size_t len = strlen(rest);

	if (path[0] != '/' || (!named && observe_path_before_deleted(path) > 0) ||
	    (size_t)n + 1 + len >= PATH_MAX) {
		return false;
	}
	memcpy(out, path, (size_t)n);
	out[n] = '/';
	memcpy(out + n + 1, rest, len + 1);
	return true;
}

/* Notes whether the file exists. If opening it failed, and not with ENOENT or ENOTDIR, the file may
 * exist. */
static void note_found(struct path_found *f, int fd)
{
	f->there = fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
	f->unseen = fd < 0 && f->there;
	f->link = false;
}

/* The state of a path that is being followed: the directory reached so far, and the rest of the
 * path. */
struct deep_way {
	int dir;
	char rest[PATH_MAX];
	int links;
	bool named; /* `dir` was found by its name in its parent directory */
};

/* Counts the bytes at the beginning of a path that do not lead to another directory: slashes, and
 * "." between them. */
static size_t count_idle(const char *s)
{
	size_t n = 0;

	while (s[n] == '/' || (s[n] == '.' && (s[n + 1] == '/' || s[n + 1] == '\0'))) {
		n++;
	}
	return n;
}

/* Removes the bytes that count_idle() counts from the beginning of w->rest. A leading slash stays,
 * because it leads to the root. */
static void skip_idle(struct deep_way *w)
{
	size_t n = w->rest[0] == '/' ? 0 : count_idle(w->rest);

	memmove(w->rest, w->rest + n, strlen(w->rest + n) + 1);
}

/* Replaces the first name, which is a symlink, by its target. Returns false if the result is too
 * long. */
static bool put_target(struct deep_way *w, const char *name, size_t behind)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(w->dir, name, to, sizeof(to) - 1);
	size_t len = strlen(w->rest + behind);

	if (n <= 0 || (size_t)n + 1 + len >= PATH_MAX) {
		return false;
	}
	memmove(w->rest + n + 1, w->rest + behind, len + 1);
	memcpy(w->rest, to, (size_t)n);
	w->rest[n] = '/';
	skip_idle(w);
	return true;
}

/* Returns whether the directory is in a /proc. Its symlinks have other targets for us than for the
 * skill, so they are not followed. */
static bool is_procfs(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Opens the first name of the rest and removes it from the rest. Returns false if following must
 * stop there, because the name leads nowhere or is a symlink that is not followed. */
static bool go_on(struct deep_way *w, bool follow, struct path_found *ret)
{
	char name[NAME_MAX + 1];
	size_t n = strcspn(w->rest, "/");
	size_t behind = n + count_idle(w->rest + n);
	struct stat st;

	if (n == 0 || n >= sizeof(name)) {
		return false;
	}
	memcpy(name, w->rest, n);
	name[n] = '\0';
	auto_fd next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	note_found(ret, next);
	if (next < 0 || fstat(next, &st) != 0 || (w->rest[behind] == '\0' && !follow)) {
		return false;
	}
	if (S_ISLNK(st.st_mode)) {
		return ++w->links <= OBSERVE_SYMLINKS && !is_procfs(w->dir) &&
		       put_target(w, name, behind);
	}
	memmove(w->rest, w->rest + behind, strlen(w->rest + behind) + 1);
	own_close(&w->dir);
	w->dir = steal_fd(&next);
	w->named = strcmp(name, "..") != 0;
	return S_ISDIR(st.st_mode);
}

static void way_done(struct deep_way *w)
{
	own_close(&w->dir);
}

bool observe_from_dir(int dir, const char *raw, bool follow, char out[PATH_MAX],
                      struct path_found *ret)
{
	AUTO(way_done) struct deep_way w = { .dir = dir };
	size_t len = strlen(raw);
	int steps = 0;

	note_found(ret, dir);
	if (w.dir < 0 || len >= sizeof(w.rest)) {
		return false;
	}
	memcpy(w.rest, raw, len + 1);
	skip_idle(&w);
	/* Asking the kernel for the path of w.dir takes longer than following a name, so it is done
	 * only once, at the end. Symlinks can make the loop follow many more names than one path
	 * can contain. */
	while (w.rest[0] != '/' && steps++ < PATH_MAX && go_on(&w, follow, ret)) {
	}
	if (w.rest[0] == '/') {
		ret->link = true;
		memcpy(out, w.rest, strlen(w.rest) + 1);
		return true;
	}
	return put_path(w.dir, w.rest, w.named, out);
}

bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       struct path_found *ret)
{
	char link[48];

	if (dirfd == AT_FDCWD) {
		snprintf(link, sizeof(link), "/proc/%d/cwd", tid);
	} else {
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, dirfd);
	}
	return observe_from_dir(open(link, O_PATH | O_DIRECTORY | O_CLOEXEC), raw, follow, out,
	                        ret);
}
