/* observe_deep.c - follows a path name by name, from an fd of a directory.
 *
 * This is for a directory whose path is longer than the kernel tells or that has no path any
 * more: an fd is all that there is of it. It is also for a directory in one that no user may
 * enter, in which the skill already was, and for paths that the kernel does not follow beneath a
 * root while another process renames. Where this ends there may be a path again for the rest. */
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

/* Joins the directory's path and `rest`. Returns false if the result is too long or the directory
 * has no path. `named`: the directory was just found by its name, so "(deleted)" at the end of
 * its path is part of the name. */
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

/* A file that the observer cannot see may still exist. */
static void note_found(struct path_found *f, int fd)
{
	f->there = fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
	f->unseen = fd < 0 && f->there;
	f->link = false;
}

/* The state while a path is followed: the directory reached, and the rest of the path. */
struct deep_way {
	int dir;
	char rest[PATH_MAX];
	int links;
	bool named; /* `dir` was found by its name, in the directory before it */
};

/* Counts the bytes that do not lead anywhere else: slashes, and "." between them. */
static size_t count_idle(const char *s)
{
	size_t n = 0;

	while (s[n] == '/' || (s[n] == '.' && (s[n + 1] == '/' || s[n + 1] == '\0'))) {
		n++;
	}
	return n;
}

/* Removes them at the beginning; a leading slash stays, because it leads to the root. */
static void skip_idle(struct deep_way *w)
{
	size_t n = w->rest[0] == '/' ? 0 : count_idle(w->rest);

	memmove(w->rest, w->rest + n, strlen(w->rest + n) + 1);
}

/* Replaces the first name by the target of a symlink. Returns false if the result is too long. */
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

/* The symlinks of /proc lead elsewhere for us than for the skill. */
static bool is_procfs(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Follows and removes the first name of the rest. Returns false if it leads nowhere or is a
 * symlink that is not followed. */
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
	/* Asking for the path takes longer than following a name, so it comes last. Targets of
	 * symlinks can have many more names than a path. */
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
