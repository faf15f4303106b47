/* observe_path.c - from what a program wrote to the path that is meant.
 *
 * The kernel follows the path for us, from a directory fd on the skill's own
 * root: mounts and symlinks are the sandbox's, and nothing leads out of it. It is asked
 * anew each time: a skill changes where its names lead, and none is remembered. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/observe.h"
#include "base/own.h"
#include "os/file.h"

#define PLAIN (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS)

#define OBSERVE_LINK 64 /* bytes of a link in /proc: /proc/PID/task/TID/fd/FD */

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

static bool in_proc(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0;
}

/* Of the first process we could see more than the skill can. */
static bool in_first(const char *path)
{
	return strncmp(path, "/proc/1/", 8) == 0;
}

/* Whether what `st` is of is found by this path: a name can also end as the link of a file
 * does that has lost its name. */
static bool is_named(const struct observer *o, const char *path, const struct stat *st)
{
	struct stat found;
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, PLAIN);

	return fd >= 0 && fstat(fd, &found) == 0 && found.st_dev == st->st_dev &&
	       found.st_ino == st->st_ino;
}

enum link {
	LINK_NONE, /* not a path */
	LINK_PATH,
	LINK_GONE, /* a directory that was removed: the path that it had, which may be another's */
	LINK_RENAMED, /* a file that has lost this name, and has others */
	LINK_DEEP,    /* its path is longer than the kernel tells */
};

/* Where a link of a process's /proc leads. */
static enum link read_link(const struct observer *o, int at, const char *link, char out[PATH_MAX])
{
	struct stat st;
	ssize_t n = readlinkat(at, link, out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = '\0';
	if (n <= 0 || out[0] != '/') {
		return n < 0 && errno == ENAMETOOLONG ? LINK_DEEP : LINK_NONE;
	}
	size_t was = observe_before_deleted(out);
	if (was == 0 || fstatat(at, link, &st, 0) != 0 || is_named(o, out, &st)) {
		return LINK_PATH;
	}
	if (S_ISDIR(st.st_mode)) {
		out[was] = '\0';
		return LINK_GONE;
	}
	return st.st_nlink > 0 ? LINK_RENAMED : LINK_NONE;
}

/* What an fd of the thread is, or with AT_FDCWD where it works. */
static enum link dir_link(struct observer *o, const struct seccomp_notif *n, int fd,
                          char out[PATH_MAX])
{
	const struct process *p = observe_process(o, n);
	char name[16] = "cwd", link[48];

	if (fd != AT_FDCWD) {
		snprintf(name, sizeof(name), "fd/%d", fd);
	}
	if (p->dir >= 0) {
		return read_link(o, p->dir, name, out);
	}
	snprintf(link, sizeof(link), "/proc/%u/%s", n->pid, name);
	return read_link(o, AT_FDCWD, link, out);
}

/* What has no name of its own is told by the link in its thread's /proc: the name that it had
 * may be another file's. */
static void name_by_link(struct observer *o, const struct seccomp_notif *n, int fd,
                         char out[PATH_MAX])
{
	const struct process *p = observe_process(o, n);
	char task[32] = "";

	if (p->thread != p->pid) {
		snprintf(task, sizeof(task), "/task/%d", p->thread);
	}
	if (fd == AT_FDCWD) {
		snprintf(out, PATH_MAX, "/proc/%d%s/cwd", p->pid, task);
	} else {
		snprintf(out, PATH_MAX, "/proc/%d%s/fd/%d", p->pid, task, fd);
	}
}

/* What is behind `top` in the path; NULL: it does not begin with it. */
static const char *behind(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

/* A path on its way to what is meant. */
struct way {
	char path[PATH_MAX];
	bool follow; /* also a symlink at its end */
	bool bare;   /* only its last name can be a symlink: its directory comes from the kernel */
	/* Where the path began, and what is behind that: how the skill itself gets there, also
	 * where the directory's path leads through one that nobody may enter. */
	enum { FROM_ROOT, FROM_THREAD, FROM_LINK } from;
	int dirfd;               /* of the thread, see openat(2) */
	char link[OBSERVE_LINK]; /* of the sandbox's /proc */
	char link_rest[PATH_MAX];
	const char *rest; /* that, or what the program wrote */
};

/* Puts numbers in the place of "self", which is the process: its first thread's files are
 * meant, and the thread that asks may have others. True: there was one. */
static bool number_self(const struct process *p, struct way *w)
{
	char self[48];
	const char *rest = behind(w->path, "/proc/thread-self");

	snprintf(self, sizeof(self), "/proc/%d", p->pid);
	if (rest != NULL) {
		snprintf(self, sizeof(self), "/proc/%d/task/%d", p->pid, p->thread);
	} else if ((rest = behind(w->path, "/proc/self")) == NULL &&
	           (rest = behind(w->path, "/dev/fd")) != NULL) {
		snprintf(self, sizeof(self), "/proc/%d/fd", p->pid);
	}
	if (rest == NULL || (rest[0] == '\0' && !w->follow)) {
		return false;
	}
	return join(w->path, self, rest[0] == '/' ? rest + 1 : rest);
}

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* How much of the path is a link of a process's /proc that leads to a file: /proc/2/fd/3,
 * /proc/2/task/4/cwd. 0: none. */
static size_t link_size(const char *path)
{
	static const char *const NAMES[] = { "/cwd", "/root", "/exe" };
	const char *at = path + strlen("/proc/");

	if (!in_proc(path) || digits(at) == 0) {
		return 0;
	}
	at += digits(at);
	if (strncmp(at, "/task/", 6) == 0 && digits(at + 6) > 0) {
		at += 6 + digits(at + 6);
	}
	const char *end =
	        strncmp(at, "/fd/", 4) == 0 && digits(at + 4) > 0 ? at + 4 + digits(at + 4) : NULL;
	for (size_t i = 0; end == NULL && i < ARRAY_LEN(NAMES); i++) {
		end = behind(at, NAMES[i]);
	}
	return end != NULL && (*end == '/' || *end == '\0') ? (size_t)(end - path) : 0;
}

/* Such a link at the beginning of the path is magic, and not followed for us: puts what it
 * leads to in its place. */
static bool through_link(const struct observer *o, struct way *w)
{
	char link[OBSERVE_LINK], to[PATH_MAX];
	size_t n = link_size(w->path);
	bool whole = w->path[n] == '\0';
	const char *rest = whole ? "" : w->path + n + 1;
	struct stat st;

	if (n == 0 || n >= sizeof(link) || in_first(w->path) || (whole && !w->follow)) {
		return false;
	}
	memcpy(link, w->path, n);
	link[n] = '\0';
	/* From a directory that was removed it goes on by the link itself (step_from); behind
	 * anything else there is nothing. */
	if (read_link(o, o->root, link + 1, to) != LINK_PATH ||
	    (!whole && (fstatat(o->root, link + 1, &st, 0) != 0 || !S_ISDIR(st.st_mode)))) {
		return false;
	}
	copy(w->link_rest, rest);
	if (!join(w->path, strcmp(to, "/") == 0 ? "" : to, rest)) {
		return false;
	}
	memcpy(w->link, link, n + 1);
	w->rest = w->link_rest;
	w->from = FROM_LINK;
	/* An fd of a symlink is the symlink. */
	w->follow = w->follow && !whole;
	w->bare = false;
	return true;
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
	struct found found;

	if (tail[0] == '\0' ||
	    !observe_from_dir(openat(o->root, link + 1, O_PATH | O_DIRECTORY | O_CLOEXEC), tail,
	                      last, path, &found)) {
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
	if (link_size(link) == (size_t)len) {
		return false; /* through_link() knows better */
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
 * anywhere; the rest is what was written. */
static void follow_missing(const struct observer *o, char path[PATH_MAX], bool last,
                           char out[PATH_MAX])
{
	char found[PATH_MAX];
	const char *rest = observe_above(o, path, found);

	for (int i = 0; i < OBSERVE_SYMLINKS && rest != NULL && step(o, found, rest, last, path);
	     i++) {
		rest = observe_above(o, path, found);
	}
	if (rest == NULL || !join(out, strcmp(found, "/") == 0 ? "" : found, rest)) {
		copy(out, path);
	}
}

static const char *const TOPS[OBSERVE_TOPS] = { "/bin",   "/sbin",  "/lib",
	                                        "/lib32", "/lib64", "/libx32" };

/* /lib is a symlink to /usr/lib on most hosts: puts its target in its place. */
static void through_top(struct observer *o, char path[PATH_MAX])
{
	char to[OBSERVE_TOP_BYTES];
	const char *rest = NULL;
	size_t i = 0;

	while (i < OBSERVE_TOPS && (rest = behind(path, TOPS[i])) == NULL) {
		i++;
	}
	if (rest == NULL || rest[0] == '\0') {
		return;
	}
	struct top_link *top = &o->tops[i];
	if (!top->known) {
		ssize_t n = readlinkat(o->root, TOPS[i] + 1, to, sizeof(to) - 1);
		if (n > 0 && n < (ssize_t)sizeof(to) - 1) {
			to[n] = '\0';
			snprintf(top->to, sizeof(top->to), "%s%s", to[0] == '/' ? "" : "/", to);
			tidy(top->to);
		}
		top->known = true;
	}
	if (top->to[0] != '\0') {
		(void)join(path, top->to, rest + 1);
	}
}

/* Most paths lead through no symlink: then one question tells whether something is there,
 * and its path is what was written. */
static bool look_plain(const struct observer *o, const struct way *w, struct resolved *ret)
{
	char to[1];

	copy(ret->path, w->path);
	fold_dots(ret->path);
	if (w->bare && ret->path[1] != '\0') {
		bool is_link = readlinkat(o->root, ret->path + 1, to, sizeof(to)) >= 0;
		ret->exists = is_link || errno == EINVAL;
		return is_link ? !w->follow : ret->exists || errno == ENOENT;
	}
	auto_fd fd = file_openat2(o->root, w->path, O_PATH, PLAIN);
	ret->exists = fd >= 0;
	return ret->exists || errno == ENOENT;
}

/* In the directory of the first process nothing is followed for the skill, and what is
 * closed to it ends its way; ".." before that leads as it says. False: out of there. */
static bool stays_in_first(const struct observer *o, char path[PATH_MAX], struct resolved *ret)
{
	char above[PATH_MAX], at[PATH_MAX];

	ret->exists = true;
	while (in_first(path)) {
		const char *dots = strstr(path, "/..");
		while (dots != NULL && dots[3] != '/' && dots[3] != '\0') {
			dots = strstr(dots + 1, "/..");
		}
		size_t n = dots != NULL ? (size_t)(dots - path) : 0;
		memcpy(above, path, n);
		above[n] = '\0';
		ret->exists = n == 0 || observe_is_closed(above) || look(o, above, true, at);
		if (n == 0 || observe_is_closed(above) || !ret->exists) {
			copy(ret->path, path);
			return true;
		}
		size_t up = (size_t)(strrchr(above, '/') - above);
		memmove(path + up, dots + 3, strlen(dots + 3) + 1);
		tidy(path);
	}
	return false;
}

enum where {
	WHERE_UNKNOWN,
	WHERE_GONE, /* in a directory that was removed: the path is what it was */
	WHERE_PATH, /* absolute and from the skill's root */
};

static enum where from_where(struct observer *o, const struct seccomp_notif *n, int dirfd,
                             const char *raw, struct way *w, struct found *ret)
{
	char dir[PATH_MAX];

	if (raw[0] == '/') {
		copy(w->path, raw);
		return WHERE_PATH;
	}
	enum link link = dir_link(o, n, dirfd, dir);
	const char *top = strcmp(dir, "/") == 0 ? "" : dir;
	if (link == LINK_PATH && join(w->path, top, raw)) {
		w->bare = strchr(raw, '/') == NULL;
		w->from = FROM_THREAD;
		w->dirfd = dirfd;
		w->rest = raw;
		return WHERE_PATH;
	}
	/* Where a directory was there may be a symlink now: only itself leads on. */
	if (observe_from_deep((pid_t)n->pid, dirfd, raw, w->follow, w->path, ret)) {
		return WHERE_PATH;
	}
	return link == LINK_GONE && join(w->path, top, raw) ? WHERE_GONE : WHERE_UNKNOWN;
}

/* Follows the path name by name, to where something is missing or a link of /proc is. For the
 * kernel ".." beneath a root is an error while others rename, which a skill does for as long
 * as it likes. True: it is another path now, without symlinks as far as it was followed. */
static bool walk(const struct observer *o, struct way *w)
{
	int root = openat(o->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char out[PATH_MAX];
	struct found found;

	if (!observe_from_dir(root, w->path + 1, w->follow, out, &found)) {
		return false;
	}
	tidy(out);
	bool moved = strcmp(out, w->path) != 0;
	copy(w->path, out);
	w->bare = false;
	return moved;
}

/* Whether something is behind a link of /proc to a directory that has no path. */
static bool is_behind_link(const struct observer *o, const struct way *w, const char *path)
{
	char link[64], out[PATH_MAX];
	size_t n = link_size(path);
	struct found found = { 0 };

	if (n == 0 || n >= sizeof(link) || path[n] != '/' || in_first(path)) {
		return false;
	}
	memcpy(link, path, n);
	link[n] = '\0';
	int dir = openat(o->root, link + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		(void)observe_from_dir(dir, path + n + 1, w->follow, out, &found);
	}
	return found.there;
}

/* Goes on from where the path began (way.from), which the skill reaches and its path does not.
 * False: there is no such place, or what it leads to has no path; nothing has changed then. */
static bool go_from(const struct observer *o, pid_t tid, struct way *w, struct found *ret)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	char out[PATH_MAX];

	if (w->from == FROM_ROOT) {
		return false;
	}
	if (w->rest[0] == '\0') { /* what the link itself leads to is there */
		*ret = (struct found){ .there = true };
		return true;
	}
	if (w->from == FROM_THREAD ? !observe_from_deep(tid, w->dirfd, w->rest, w->follow, out, ret)
	                           : !observe_from_dir(openat(o->root, w->link + 1, flags), w->rest,
	                                               w->follow, out, ret)) {
		return false;
	}
	tidy(out);
	copy(w->path, out);
	w->bare = false;
	w->from = FROM_ROOT;
	return true;
}

/* Follows the path once through. True: it has come to another one, which nobody has looked at
 * yet. */
static bool resolve_once(struct observer *o, const struct seccomp_notif *n, struct way *w,
                         struct resolved *ret)
{
	char itself[PATH_MAX];

	/* To ask who it is costs; only these two names need it. */
	if (in_proc(w->path) || behind(w->path, "/dev/fd") != NULL) {
		const struct process *p = observe_process(o, n);
		for (int i = 0; i < OBSERVE_SYMLINKS && (number_self(p, w) || through_link(o, w));
		     i++) {
		}
	}
	if (in_first(w->path)) {
		return !stays_in_first(o, w->path, ret);
	}
	through_top(o, w->path);
	if (look_plain(o, w, ret)) {
		return false;
	}
	ret->exists = look(o, w->path, w->follow, ret->path);
	if (ret->exists) {
		return false;
	}
	/* What we cannot see says nothing about the skill; but in /proc, and behind a
	 * link of it (EXDEV), it is the kernel that closes what is not for it. */
	bool proc = in_proc(w->path);
	bool seen = errno == ENOENT || errno == ENOTDIR || errno == EXDEV || proc;
	bool closed = errno == EACCES; /* a directory that neither we nor the skill may enter */
	o->starved |= observe_is_shortage(errno);
	if ((seen || errno == EAGAIN) && walk(o, w)) {
		return true;
	}
	struct found found;
	if (closed && !proc && go_from(o, (pid_t)n->pid, w, &found)) {
		copy(ret->path, w->path);
		fold_dots(ret->path);
		ret->exists = found.there;
		ret->unseen = found.unseen;
		return found.link || in_proc(w->path);
	}
	copy(itself, w->path);
	follow_missing(o, w->path, w->follow, ret->path);
	if (closed && !proc && !in_proc(ret->path)) {
		ret->exists = ret->unseen = true;
		fold_dots(ret->path);
		return false;
	}
	if (!seen && !in_proc(ret->path)) {
		ret->known = false;
		ret->exists = ret->unseen = true;
		/* Of symlinks in a circle the first can be named. */
		if (!look(o, itself, false, ret->path)) {
			copy(ret->path, itself);
		}
		return false;
	}
	if ((proc || in_proc(ret->path)) && strcmp(ret->path, itself) != 0) {
		copy(w->path, ret->path);
		w->bare = false;
		return true;
	}
	ret->exists = in_proc(ret->path) &&
	              (look(o, ret->path, false, itself) || is_behind_link(o, w, ret->path));
	fold_dots(ret->path);
	return false;
}

void observe_resolve(struct observer *o, const struct seccomp_notif *n, int dirfd, const char *raw,
                     bool follow, struct resolved *ret)
{
	struct way w; /* the path is long, and mostly stays unused */

	w.follow = follow;
	w.bare = false;
	w.from = FROM_ROOT;
	struct found found = { 0 };
	enum where where = from_where(o, n, dirfd, raw, &w, &found);
	ret->exists = found.there;
	ret->unseen = false;
	ret->known = where != WHERE_UNKNOWN;
	if (!ret->known) {
		copy(ret->path, raw);
		return;
	}
	/* The directory itself, or one above it. */
	if (where == WHERE_GONE && found.there && !found.unseen) {
		name_by_link(o, n, dirfd, ret->path);
		(void)join(ret->path, ret->path, raw);
		tidy(ret->path);
		return;
	}
	tidy(w.path);
	if (where == WHERE_GONE) {
		fold_dots(w.path);
		copy(ret->path, w.path);
		ret->unseen = found.unseen;
		return;
	}
	for (int i = 0; i < OBSERVE_SYMLINKS && resolve_once(o, n, &w, ret); i++) {
	}
}

/* A memfd is named by the kernel's text, which begins as no path of the sandbox does. */
static bool is_memfd(const char *path)
{
	return strncmp(path, "/memfd:", 7) == 0;
}

void observe_resolve_fd(struct observer *o, const struct seccomp_notif *n, int fd,
                        struct resolved *ret)
{
	enum link link = dir_link(o, n, fd, ret->path);

	ret->exists = true;
	ret->unseen = false;
	ret->known = link != LINK_NONE;
	if (link == LINK_NONE && ret->path[0] == '\0') {
		snprintf(ret->path, sizeof(ret->path), "fd %d", fd);
	} else if (link != LINK_PATH && !is_memfd(ret->path) &&
	           (ret->known || ret->path[0] == '/')) {
		name_by_link(o, n, fd, ret->path);
	}
}
