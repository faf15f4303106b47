/* observe_deep.c - from a directory whose path is longer than the kernel tells.
 *
 * All that can be had of such a directory is an fd, and from there one name after
 * the other, until where that leads and what is left of the path fit together. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/observe.h"
#include "base/own.h"

/* The path of the directory with `rest` behind it; false: too long. */
static bool fits(int dir, const char *rest, char out[PATH_MAX])
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	ssize_t n = readlink(link, out, PATH_MAX - 1);
	size_t len = strlen(rest);
	if (n <= 0 || out[0] != '/' || (size_t)n + 1 + len >= PATH_MAX) {
		return false;
	}
	out[n] = '/';
	memcpy(out + n + 1, rest, len + 1);
	return true;
}

/* Puts the target of a symlink before `rest`; false: too long. */
static bool put_before(int dir, const char *name, char rest[PATH_MAX])
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
	size_t len = strlen(rest);

	if (n <= 0 || (size_t)n + 1 + len >= PATH_MAX) {
		return false;
	}
	memmove(rest + n + 1, rest, len + 1);
	memcpy(rest, to, (size_t)n);
	rest[n] = '/';
	return true;
}

/* Goes on by the first name of `rest`, which is taken away; false: it leads nowhere,
 * or is a symlink at the end that is not followed. */
static bool go_on(int *dir, char rest[PATH_MAX], bool follow, bool *ret_there)
{
	char name[NAME_MAX + 1];
	size_t n = strcspn(rest, "/");
	size_t behind = n + strspn(rest + n, "/");
	struct stat st;

	if (n == 0 || n >= sizeof(name)) {
		return false;
	}
	memcpy(name, rest, n);
	name[n] = '\0';
	auto_fd next = openat(*dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	*ret_there = next >= 0;
	if (next < 0 || fstat(next, &st) != 0 || (rest[behind] == '\0' && !follow)) {
		return false;
	}
	memmove(rest, rest + behind, strlen(rest + behind) + 1);
	if (S_ISLNK(st.st_mode)) {
		return put_before(*dir, name, rest);
	}
	own_close(dir);
	*dir = steal_fd(&next);
	return S_ISDIR(st.st_mode);
}

bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       bool *ret_there)
{
	char link[48], rest[PATH_MAX];
	size_t len = strlen(raw);

	if (dirfd == AT_FDCWD) {
		snprintf(link, sizeof(link), "/proc/%d/cwd", tid);
	} else {
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, dirfd);
	}
	auto_fd dir = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*ret_there = dir >= 0;
	if (dir < 0 || len >= sizeof(rest)) {
		return false;
	}
	memcpy(rest, raw, len + 1);
	/* Symlinks can lead round and round. */
	for (int i = 0; i < PATH_MAX; i++) {
		if (rest[0] == '/') { /* where a symlink leads */
			memcpy(out, rest, strlen(rest) + 1);
			return true;
		}
		if (fits(dir, rest, out)) {
			return true;
		}
		if (!go_on(&dir, rest, follow, ret_there)) {
			return false;
		}
	}
	return false;
}
