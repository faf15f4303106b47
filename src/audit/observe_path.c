/* observe_path.c - from what a program wrote to the path that is meant.
 *
 * The kernel follows the path for us, from a directory fd on the skill's own
 * root: mounts and symlinks are the sandbox's, and nothing leads out of it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/observe.h"
#include "base/own.h"
#include "os/file.h"

/* Takes "//", "/./" and a final "/" out. ".." stays: what is before it may be a
 * symlink. */
static void tidy(char *path)
{
	char *out = path;

	for (const char *in = path; *in != '\0';) {
		if (*in != '/') {
			*out++ = *in++;
			continue;
		}
		while (*in == '/') {
			in++;
		}
		if (in[0] == '.' && (in[1] == '/' || in[1] == '\0')) {
			in++;
		} else if (*in != '\0') {
			*out++ = '/';
		}
	}
	*out = '\0';
	if (path[0] == '\0') {
		path[0] = '/';
		path[1] = '\0';
	}
}

/* Where nothing is there to be followed, ".." is what it says. */
static void fold_dots(char *path)
{
	char *out = path;

	for (const char *in = path; *in != '\0';) {
		size_t n = 1 + strcspn(in + 1, "/");
		if (n == 3 && memcmp(in, "/..", 3) == 0) {
			while (out > path && *--out != '/') {
			}
		} else {
			memmove(out, in, n);
			out += n;
		}
		in += n;
	}
	*out = '\0';
	if (path[0] == '\0') {
		path[0] = '/';
		path[1] = '\0';
	}
}

/* Cut where there is no room. */
static void copy(char out[PATH_MAX], const char *path)
{
	size_t n = strlen(path);

	n = n < PATH_MAX ? n : PATH_MAX - 1;
	memmove(out, path, n);
	out[n] = '\0';
}

/* Joins with care for the room; false: too long. `out` may be `dir` or the place
 * that `rest` lies in. */
static bool join(char out[PATH_MAX], const char *dir, const char *rest)
{
	size_t head = strlen(dir), tail = strlen(rest);
	size_t slash = tail > 0 ? 1 : 0;

	if (head + slash + tail >= PATH_MAX) {
		return false;
	}
	memmove(out + head + slash, rest, tail + 1);
	for (size_t i = 0; i < head; i++) {
		out[i] = dir[i];
	}
	if (slash > 0) {
		out[head] = '/';
	}
	return true;
}

size_t observe_before_deleted(const char *to)
{
	static const char deleted[] = " (deleted)";
	const size_t cut = sizeof(deleted) - 1;
	size_t n = strlen(to);

	return n > cut && strcmp(to + n - cut, deleted) == 0 ? n - cut : 0;
}

/* Whether the thread finds by this path what `st` is of: a name can also end as
 * the link of a file does that has lost its name. */
static bool is_named(pid_t tid, const char *path, const struct stat *st)
{
	char at[PATH_MAX + 32];
	struct stat found;

	snprintf(at, sizeof(at), "/proc/%d/root%s", tid, path);
	return stat(at, &found) == 0 && found.st_dev == st->st_dev && found.st_ino == st->st_ino;
}

/* Reads a link of the thread's /proc; false: it is not a path. Of a directory
 * that was removed, the path that it had; *ret_gone: something else may have it now. */
static bool proc_link(pid_t tid, const char *name, char out[PATH_MAX], bool *ret_gone)
{
	char path[64];
	struct stat st;

	*ret_gone = false;
	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	ssize_t n = readlink(path, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	if (n <= 0 || out[0] != '/') {
		return false;
	}
	size_t was = observe_before_deleted(out);
	if (was > 0 && stat(path, &st) == 0 && !is_named(tid, out, &st)) {
		out[was] = '\0';
		*ret_gone = S_ISDIR(st.st_mode);
		return *ret_gone;
	}
	return true;
}

static bool fd_link(pid_t tid, int fd, char out[PATH_MAX], bool *ret_gone)
{
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link(tid, name, out, ret_gone);
}

/* What is behind /proc/self or /proc/thread-self; NULL: it is neither. */
static const char *own_rest(const char *path)
{
	size_t n = strncmp(path, "/proc/self", 10) == 0          ? 10
	           : strncmp(path, "/proc/thread-self", 17) == 0 ? 17
	                                                         : 0;

	return n > 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

/* /proc/self/fd/3, /proc/self/cwd/x: magic, and the caller's own. Replaces what
 * it can of `path`; true: something was. */
static bool own_links(pid_t tid, pid_t inner, char path[PATH_MAX])
{
	char self[32], to[PATH_MAX], name[32];
	const char *rest = own_rest(path);
	bool numbered = false;

	snprintf(self, sizeof(self), "/proc/%d", inner);
	size_t n = strlen(self);
	if (rest == NULL && strncmp(path, self, n) == 0 && path[n] == '/') {
		rest = path + n;
		numbered = true;
	} else if (rest == NULL && strncmp(path, "/dev/fd/", 8) == 0) {
		rest = path + 4;
	}
	if (rest == NULL) {
		return false;
	}
	size_t len = strncmp(rest, "/fd/", 4) == 0    ? 4 + strspn(rest + 4, "0123456789")
	             : strncmp(rest, "/cwd", 4) == 0  ? 4
	             : strncmp(rest, "/root", 5) == 0 ? 5
	             : strncmp(rest, "/exe", 4) == 0  ? 4
	                                              : 0;
	bool whole = len > 0 && len < sizeof(name) && (rest[len] == '/' || rest[len] == '\0') &&
	             rest[len - 1] != '/';
	if (whole) {
		snprintf(name, sizeof(name), "%.*s", (int)(len - 1), rest + 1);
		bool gone;
		/* From one that was removed it goes on by the link itself (step_from). */
		if (proc_link(tid, name, to, &gone) && !gone) {
			return join(path, strcmp(to, "/") == 0 ? "" : to,
			            rest[len] == '/' ? rest + len + 1 : "");
		}
	}
	if (numbered) {
		return false;
	}
	char tail[PATH_MAX];
	snprintf(tail, sizeof(tail), "%s", rest[0] == '/' ? rest + 1 : rest);
	return join(path, self, tail);
}

/* The path of what the kernel finds; false with errno. */
static bool look(const struct observer *o, const char *path, bool follow, char out[PATH_MAX])
{
	auto_fd fd =
	        file_openat2(o->root, path, O_PATH | (follow ? 0 : O_NOFOLLOW), RESOLVE_IN_ROOT);

	return fd >= 0 && file_path(fd, out, PATH_MAX) > 0;
}

/* The slash nearest to the middle between two places of the path; 0: there is none. */
static size_t slash_between(const char *path, size_t low, size_t high)
{
	size_t mid = low + (high - low) / 2;

	for (size_t i = mid; i > low; i--) {
		if (path[i] == '/') {
			return i;
		}
	}
	for (size_t i = mid + 1; i < high; i++) {
		if (path[i] == '/') {
			return i;
		}
	}
	return 0;
}

/* What is above something that is there is there too, so that halving finds where it
 * ends: a path can have two thousand names, and each look follows all of them. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX])
{
	const char *last = strrchr(path, '/');
	size_t cut = last != NULL ? (size_t)(last - path) : 0;
	size_t low = 0, high = strlen(path);
	char dir[PATH_MAX], at[PATH_MAX];

	/* Mostly it is the last name alone that is missing. */
	for (; cut > 0; cut = slash_between(path, low, high)) {
		memcpy(dir, path, cut);
		dir[cut] = '\0';
		if (look(o, dir, true, at)) {
			copy(found, at);
			low = cut;
		} else {
			high = cut;
		}
	}
	return low > 0 || look(o, "/", true, found) ? path + low + 1 : NULL;
}

static bool in_proc(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0;
}

/* Of the first process we could see more than the skill can. */
static bool in_first(const char *path)
{
	return strncmp(path, "/proc/1/", 8) == 0;
}

/* A pipe, a memfd, a file that has lost its name: the link in a process's
 * directory is all the path that it has. */
static bool is_nameless(const char *link, const char *to)
{
	return in_proc(link) && link[6] >= '0' && link[6] <= '9' &&
	       (to[0] != '/' || observe_before_deleted(to) > 0);
}

/* On from a directory that a link of /proc leads to, and that has no path: it was
 * removed, or is too deep. */
static bool step_from(const struct observer *o, const char *link, const char *tail, bool last,
                      char path[PATH_MAX])
{
	bool there;

	if (tail[0] == '\0' ||
	    !observe_from_dir(openat(o->root, link + 1, O_PATH | O_DIRECTORY | O_CLOEXEC), tail,
	                      last, path, &there)) {
		return false;
	}
	tidy(path);
	return true;
}

/* If the first name of `rest`, in `found`, is a symlink (one that leads nowhere,
 * or it would have been followed): the path with its target in its place. */
static bool step(const struct observer *o, const char *found, const char *rest, bool last,
                 char path[PATH_MAX])
{
	char link[PATH_MAX], to[PATH_MAX], tail[PATH_MAX];
	size_t n = strcspn(rest, "/");
	const char *top = strcmp(found, "/") == 0 ? "" : found;

	snprintf(tail, sizeof(tail), "%s", rest[n] == '/' ? rest + n + 1 : "");
	if (tail[0] == '\0' && !last) {
		return false;
	}
	int len = snprintf(link, sizeof(link), "%s/%.*s", top, (int)n, rest);
	if (len < 0 || (size_t)len >= sizeof(link) || in_first(link)) {
		return false;
	}
	ssize_t got = readlinkat(o->root, link + 1, to, sizeof(to) - 1);
	if (got <= 0) {
		return errno == ENAMETOOLONG && step_from(o, link, tail, last, path);
	}
	to[got] = '\0';
	if (is_nameless(link, to)) {
		return step_from(o, link, tail, last, path);
	}
	char joined[PATH_MAX];
	if (!(to[0] == '/' ? join(joined, "", to + 1) : join(joined, top, to)) ||
	    !join(path, joined, tail)) {
		return false;
	}
	tidy(path);
	return true;
}

/* Follows what leads to something that is not there, for as long as it leads
 * anywhere; the rest is what was written. True: there was something to follow. */
static bool follow_missing(const struct observer *o, char path[PATH_MAX], bool last,
                           char out[PATH_MAX])
{
	char found[PATH_MAX];
	const char *rest = observe_above(o, path, found);
	int i = 0;

	for (; i < OBSERVE_SYMLINKS && rest != NULL && step(o, found, rest, last, path); i++) {
		rest = observe_above(o, path, found);
	}
	if (rest == NULL || !join(out, strcmp(found, "/") == 0 ? "" : found, rest)) {
		snprintf(out, PATH_MAX, "%s", path);
	}
	fold_dots(out);
	return i > 0;
}

static struct known_dir *dir_slot(struct observer *o, const char *raw, size_t n)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ (unsigned char)raw[i]) * 16777619U;
	}
	return &o->dirs[h % OBSERVE_DIRS];
}

/* Whether what `path` names cannot be changed while the skill runs. */
static bool is_fixed(const struct observer *o, const char *path)
{
	return o->fixed && (strncmp(path, "/usr", 4) == 0 || strncmp(path, "/etc", 4) == 0) &&
	       (path[4] == '/' || path[4] == '\0');
}

/* Follows a directory; false: it cannot be remembered. One that is missing can:
 * compilers look for every header in all of theirs. Whether it still is, each
 * look at something in it tells. */
static bool follow_dir(const struct observer *o, const char *dir, char found[PATH_MAX])
{
	char path[PATH_MAX];

	if (look(o, dir, true, found)) {
		return is_fixed(o, found);
	}
	/* "missing/.." is nowhere, and what it would be folded to may be there. */
	if (errno != ENOENT || strstr(dir, "/..") != NULL) {
		return false;
	}
	copy(path, dir);
	(void)follow_missing(o, path, true, found);
	return is_fixed(o, found);
}

/* The directory of `path`, followed, from memory or the kernel; false: not one
 * that stays. */
static bool fixed_dir(struct observer *o, const char *path, size_t n, const char **ret)
{
	struct known_dir *d = dir_slot(o, path, n);
	char dir[OBSERVE_DIR_BYTES], found[PATH_MAX];

	if (n == 0 || n >= sizeof(dir)) {
		return false;
	}
	if (strncmp(d->raw, path, n) != 0 || d->raw[n] != '\0') {
		memcpy(dir, path, n);
		dir[n] = '\0';
		if (!follow_dir(o, dir, found) || strlen(found) >= sizeof(dir)) {
			return false;
		}
		memcpy(d->raw, dir, n + 1);
		memcpy(d->path, found, strlen(found) + 1);
	}
	*ret = d->path;
	return true;
}

/* Most paths: something in /usr that is no symlink. One question to the kernel
 * tells that, and whether it is there. `followed`: its directory already is. */
static bool look_fixed(struct observer *o, const char *path, bool followed, bool follow,
                       struct resolved *ret)
{
	const char *name = strrchr(path, '/');
	const char *dir;
	char to[1];

	if (name == NULL || strcmp(name, "/..") == 0) {
		return false;
	}
	if (followed && is_fixed(o, path)) {
		copy(ret->path, path);
	} else if (!fixed_dir(o, path, (size_t)(name - path), &dir) ||
	           !join(ret->path, dir, name + 1)) {
		return false;
	}
	if (readlinkat(o->root, ret->path + 1, to, sizeof(to)) >= 0) {
		ret->exists = true;
		return !follow;
	}
	ret->exists = errno == EINVAL;
	return ret->exists || errno == ENOENT;
}

enum where {
	WHERE_UNKNOWN,
	WHERE_GONE, /* in a directory that was removed: the path is what it was */
	WHERE_PATH, /* absolute and from the skill's root */
};

static enum where from_where(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                             bool *ret_there)
{
	char dir[PATH_MAX];
	bool gone = false;

	if (raw[0] == '/') {
		copy(out, raw);
		return WHERE_PATH;
	}
	bool named = dirfd == AT_FDCWD ? proc_link(tid, "cwd", dir, &gone)
	                               : fd_link(tid, dirfd, dir, &gone);
	const char *top = strcmp(dir, "/") == 0 ? "" : dir;
	/* Where a directory was there may be a symlink now: only itself leads on. */
	if ((named && !gone && join(out, top, raw)) ||
	    observe_from_deep(tid, dirfd, raw, follow, out, ret_there)) {
		return WHERE_PATH;
	}
	return gone && join(out, top, raw) ? WHERE_GONE : WHERE_UNKNOWN;
}

/* Follows `path` once through; `bare`: its directory comes from the kernel. True:
 * it has come by a link of /proc, which the kernel does not follow for us, to a path
 * that nobody has looked at yet. */
static bool resolve_once(struct observer *o, pid_t tid, char path[PATH_MAX], bool bare, bool follow,
                         struct resolved *ret)
{
	char itself[PATH_MAX];

	/* To ask who it is costs; only these two names need it. */
	if (in_proc(path) || strncmp(path, "/dev/fd/", 8) == 0) {
		pid_t inner = observe_process(o, tid)->pid;
		for (int i = 0; i < OBSERVE_SYMLINKS && own_links(tid, inner, path); i++) {
		}
	}
	if (in_first(path)) {
		fold_dots(path);
		ret->exists = true;
		snprintf(ret->path, sizeof(ret->path), "%s", path);
		return false;
	}
	if (look_fixed(o, path, bare, follow, ret)) {
		return false;
	}
	ret->exists = look(o, path, follow, ret->path);
	if (ret->exists) {
		return false;
	}
	/* What we cannot see says nothing about the skill; but in /proc, and behind a
	 * link of it (EXDEV), it is the kernel that closes what is not for it. */
	bool proc = in_proc(path);
	bool seen = errno == ENOENT || errno == ENOTDIR || errno == EXDEV || proc;
	copy(itself, path);
	bool followed = follow_missing(o, path, follow, ret->path);
	if (!seen && !in_proc(ret->path)) {
		ret->known = false;
		ret->exists = true;
		copy(ret->path, itself);
		return false;
	}
	if ((followed && (proc || in_proc(ret->path))) || own_rest(ret->path) != NULL) {
		return true;
	}
	ret->exists = in_proc(ret->path) && look(o, ret->path, false, itself);
	return false;
}

void observe_resolve(struct observer *o, pid_t tid, int dirfd, const char *raw, bool follow,
                     struct resolved *ret)
{
	char path[PATH_MAX];
	/* A name alone: its directory comes from the kernel. */
	bool bare = strchr(raw, '/') == NULL;

	ret->exists = false;
	enum where where = from_where(tid, dirfd, raw, follow, path, &ret->exists);
	ret->known = where != WHERE_UNKNOWN;
	if (!ret->known) {
		snprintf(ret->path, sizeof(ret->path), "%s", raw);
		return;
	}
	tidy(path);
	if (where == WHERE_GONE) {
		fold_dots(path);
		copy(ret->path, path);
		return;
	}
	for (int i = 0; i < OBSERVE_SYMLINKS && resolve_once(o, tid, path, bare, follow, ret);
	     i++) {
		copy(path, ret->path);
		bare = false;
	}
}

void observe_resolve_fd(struct observer *o, pid_t tid, int fd, struct resolved *ret)
{
	bool gone;

	(void)o;
	ret->exists = true;
	ret->known = fd_link(tid, fd, ret->path, &gone);
	if (!ret->known && ret->path[0] == '\0') {
		snprintf(ret->path, sizeof(ret->path), "fd %d", fd);
	}
}
