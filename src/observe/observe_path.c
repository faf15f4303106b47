/* observe_path.c - finds the file that a path of a program means.
 *
 * The kernel follows the path for us, from a directory fd of the skill's own root. So the mounts
 * and symlinks on the way are those of the sandbox, and no path leads out of it. The kernel is
 * asked each time and no answer is kept, because a skill can change where its names lead. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "observe/observe_path_priv.h"
#include "base/own.h"
#include "os/file.h"

/* Writes the path of the file that the kernel finds. Returns false with errno if there is none. */
static bool look_up_path(const struct observer *o, const char *path, bool follow,
                         char out[PATH_MAX])
{
	auto_fd fd =
	        file_openat2(o->root, path, O_PATH | (follow ? 0 : O_NOFOLLOW), RESOLVE_IN_ROOT);

	return fd >= 0 && file_path(fd, out, PATH_MAX) > 0;
}

/* Returns the position of a slash near the middle between two positions of the path; 0: there is
 * none. */
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

/* Finds the longest existing part by binary search, which works because every directory above an
 * existing file exists, too. Trying the names one after the other would be slow: a path can have
 * two thousand names, and the kernel follows all of them at each step. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX])
{
	const char *last = strrchr(path, '/');
	size_t cut = last != NULL ? (size_t)(last - path) : 0;
	size_t low = 0, high = strlen(path);
	char dir[PATH_MAX], at[PATH_MAX];

	/* Begin before the last name, because usually only that name is missing. */
	for (; cut > 0; cut = slash_between(path, low, high)) {
		memcpy(dir, path, cut);
		dir[cut] = '\0';
		if (look_up_path(o, dir, true, at)) {
			observe_path_copy(found, at);
			low = cut;
		} else {
			high = cut;
		}
	}
	return low > 0 || look_up_path(o, "/", true, found) ? path + low + 1 : NULL;
}

/* Follows `tail` from a directory that has no path, because it was removed or its path is too long.
 * `link` is a link of /proc that leads to the directory. If it can be followed, writes the new path
 * to `path` and returns true. */
static bool step_from(const struct observer *o, const char *link, const char *tail, bool last,
                      char path[PATH_MAX])
{
	struct path_found found;

	if (tail[0] == '\0' ||
	    !observe_from_dir(openat(o->root, link + 1, O_PATH | O_DIRECTORY | O_CLOEXEC), tail,
	                      last, path, &found)) {
		return false;
	}
	observe_path_tidy(path);
	return true;
}

/* If the first name of `rest`, in the directory `found`, is a symlink, replaces the name by its
 * target. That target does not exist; otherwise the kernel would have followed the symlink. If the
 * name was replaced, writes the new path to `path` and returns true. */
static bool step_over(const struct observer *o, const char *found, const char *rest, bool last,
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
	if (len < 0 || (size_t)len >= sizeof(link) || observe_path_in_first(link)) {
		return false;
	}
	ssize_t got = readlinkat(o->root, link + 1, to, sizeof(to) - 1);
	if (got <= 0) {
		return errno == ENAMETOOLONG && step_from(o, link, tail, last, path);
	}
	to[got] = '\0';
	if (observe_link_is_nameless(link, to)) {
		return step_from(o, link, tail, last, path);
	}
	if (observe_link_size(link) == (size_t)len) {
		return false; /* observe_link_follow() handles a whole link of /proc */
	}
	char joined[PATH_MAX];
	if (!(to[0] == '/' ? observe_path_join(joined, "", to + 1)
	                   : observe_path_join(joined, top, to)) ||
	    !observe_path_join(path, joined, tail)) {
		return false;
	}
	observe_path_tidy(path);
	return true;
}

/* Follows a path whose end does not exist, as far as symlinks lead. The part that does not exist
 * stays as the program gave it. */
static void follow_missing(const struct observer *o, char path[PATH_MAX], bool last,
                           char out[PATH_MAX])
{
	char found[PATH_MAX];
	const char *rest = observe_above(o, path, found);

	for (int i = 0;
	     i < OBSERVE_SYMLINKS && rest != NULL && step_over(o, found, rest, last, path); i++) {
		rest = observe_above(o, path, found);
	}
	if (rest == NULL || !observe_path_join(out, strcmp(found, "/") == 0 ? "" : found, rest)) {
		observe_path_copy(out, path);
	}
}

static const char *const TOPS[OBSERVE_TOPS] = { "/bin",   "/sbin",  "/lib",
	                                        "/lib32", "/lib64", "/libx32" };

/* Replaces /lib and the like, which are symlinks to /usr/lib on most hosts, by their targets. */
static void through_top(struct observer *o, char path[PATH_MAX])
{
	char to[OBSERVE_TOP_BYTES];
	const char *rest = NULL;
	size_t i = 0;

	while (i < OBSERVE_TOPS && (rest = observe_path_behind(path, TOPS[i])) == NULL) {
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
			observe_path_tidy(top->to);
		}
		top->known = true;
	}
	if (top->to[0] != '\0') {
		(void)observe_path_join(path, top->to, rest + 1);
	}
}

/* Examines a path in the usual case that it contains no symlink. Then one system call says whether
 * the file exists, and the path that the program gave is its path. Returns false if the path must
 * be followed. */
static bool look_plain(const struct observer *o, const struct path_way *w, struct resolved *ret)
{
	char to[1];

	observe_path_copy(ret->path, w->path);
	observe_path_fold_dots(ret->path);
	if (w->bare && ret->path[1] != '\0') {
		bool is_link = readlinkat(o->root, ret->path + 1, to, sizeof(to)) >= 0;
		ret->exists = is_link || errno == EINVAL;
		return is_link ? !w->follow : ret->exists || errno == ENOENT;
	}
	auto_fd fd = file_openat2(o->root, w->path, O_PATH, OBSERVE_PLAIN);
	ret->exists = fd >= 0;
	return ret->exists || errno == ENOENT;
}

/* Resolves a path in the /proc directory of the first process. In that directory the observer may
 * see more than the skill, so it follows nothing there: the path ends at the first file that is
 * closed to the skill. Only a ".." before that file is followed. Returns false if the path leads
 * out of that directory. */
static bool stays_in_first(const struct observer *o, char path[PATH_MAX], struct resolved *ret)
{
	char above[PATH_MAX], at[PATH_MAX];

	ret->exists = true;
	while (observe_path_in_first(path)) {
		const char *dots = strstr(path, "/..");
		while (dots != NULL && dots[3] != '/' && dots[3] != '\0') {
			dots = strstr(dots + 1, "/..");
		}
		size_t n = dots != NULL ? (size_t)(dots - path) : 0;
		memcpy(above, path, n);
		above[n] = '\0';
		ret->exists =
		        n == 0 || observe_is_closed(above) || look_up_path(o, above, true, at);
		if (n == 0 || observe_is_closed(above) || !ret->exists) {
			observe_path_copy(ret->path, path);
			return true;
		}
		size_t up = (size_t)(strrchr(above, '/') - above);
		memmove(path + up, dots + 3, strlen(dots + 3) + 1);
		observe_path_tidy(path);
	}
	return false;
}

enum where {
	WHERE_UNKNOWN,
	WHERE_GONE, /* the path begins in a removed directory, whose former path is used */
	WHERE_PATH, /* the path is absolute, from the skill's root */
};

static enum where from_where(struct observer *o, const struct seccomp_notif *n, int dirfd,
                             const char *raw, struct path_way *w, struct path_found *ret)
{
	char dir[PATH_MAX];

	if (raw[0] == '/') {
		observe_path_copy(w->path, raw);
		return WHERE_PATH;
	}
	enum proc_link link = observe_link_of(o, n, dirfd, dir);
	const char *top = strcmp(dir, "/") == 0 ? "" : dir;
	if (link == LINK_PATH && observe_path_join(w->path, top, raw)) {
		w->bare = strchr(raw, '/') == NULL;
		w->from = FROM_THREAD;
		w->dirfd = dirfd;
		w->rest = raw;
		return WHERE_PATH;
	}
	/* Another file or a symlink may be at the directory's former path now, so follow the path
	 * from the directory itself. */
	if (observe_from_deep((pid_t)n->pid, dirfd, raw, w->follow, w->path, ret)) {
		return WHERE_PATH;
	}
	return link == LINK_GONE && observe_path_join(w->path, top, raw) ? WHERE_GONE
	                                                                 : WHERE_UNKNOWN;
}

/* Follows the path name by name, up to a missing name or a link of /proc. The kernel cannot always
 * do that for us: with RESOLVE_IN_ROOT, ".." fails with EAGAIN while another process renames, and a
 * skill can rename all the time. Returns true if the path changed; then the part that was followed
 * contains no symlinks. */
static bool walk_names(const struct observer *o, struct path_way *w)
{
	int root = openat(o->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char out[PATH_MAX];
	struct path_found found;

	if (!observe_from_dir(root, w->path + 1, w->follow, out, &found)) {
		return false;
	}
	observe_path_tidy(out);
	bool moved = strcmp(out, w->path) != 0;
	observe_path_copy(w->path, out);
	w->bare = false;
	return moved;
}

/* Follows the path again from where it began (path_way.from). The skill can reach that directory
 * although the directory's path does not lead to it. Returns false if there is no such directory or
 * the result has no path; then nothing has changed. */
static bool go_from(const struct observer *o, pid_t tid, struct path_way *w, struct path_found *ret)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	char out[PATH_MAX];

	if (w->from == FROM_ROOT) {
		return false;
	}
	if (w->rest[0] == '\0') { /* the link itself leads to a file that exists */
		*ret = (struct path_found){ .there = true };
		return true;
	}
	if (w->from == FROM_THREAD ? !observe_from_deep(tid, w->dirfd, w->rest, w->follow, out, ret)
	                           : !observe_from_dir(openat(o->root, w->link + 1, flags), w->rest,
	                                               w->follow, out, ret)) {
		return false;
	}
	observe_path_tidy(out);
	observe_path_copy(w->path, out);
	w->bare = false;
	w->from = FROM_ROOT;
	return true;
}

/* Follows the path. Returns true if that gave another path, which must be followed again. */
static bool resolve_once(struct observer *o, const struct seccomp_notif *n, struct path_way *w,
                         struct resolved *ret)
{
	char itself[PATH_MAX];

	/* Reading the facts about the caller takes time, and only paths in /proc and /dev/fd need
	 * them. */
	if (observe_path_in_proc(w->path) || observe_path_behind(w->path, "/dev/fd") != NULL) {
		const struct process *p = observe_process(o, n);
		for (int i = 0; i < OBSERVE_SYMLINKS &&
		                (observe_link_number_self(p, w) || observe_link_follow(o, w));
		     i++) {
		}
	}
	if (observe_path_in_first(w->path)) {
		return !stays_in_first(o, w->path, ret);
	}
	through_top(o, w->path);
	if (look_plain(o, w, ret)) {
		return false;
	}
	ret->exists = look_up_path(o, w->path, w->follow, ret->path);
	if (ret->exists) {
		return false;
	}
	/* If the observer cannot open the file, the skill may still be able to open it. This is not
	 * so in /proc and behind a link of /proc (EXDEV): there the kernel hides files that the
	 * skill must not see. */
	bool proc = observe_path_in_proc(w->path);
	bool seen = errno == ENOENT || errno == ENOTDIR || errno == EXDEV || proc;
	bool closed =
	        errno == EACCES; /* neither we nor the skill may enter a directory of the path */
	o->starved |= observe_is_shortage(errno);
	if ((seen || errno == EAGAIN) && walk_names(o, w)) {
		return true;
	}
	struct path_found found;
	if (closed && !proc && go_from(o, (pid_t)n->pid, w, &found)) {
		observe_path_copy(ret->path, w->path);
		observe_path_fold_dots(ret->path);
		ret->exists = found.there;
		ret->unseen = found.unseen;
		return found.link || observe_path_in_proc(w->path);
	}
	observe_path_copy(itself, w->path);
	follow_missing(o, w->path, w->follow, ret->path);
	if (closed && !proc && !observe_path_in_proc(ret->path)) {
		ret->exists = ret->unseen = true;
		observe_path_fold_dots(ret->path);
		return false;
	}
	if (!seen && !observe_path_in_proc(ret->path)) {
		ret->known = false;
		ret->exists = ret->unseen = true;
		/* If symlinks form a circle, the path of the first symlink is used. */
		if (!look_up_path(o, itself, false, ret->path)) {
			observe_path_copy(ret->path, itself);
		}
		return false;
	}
	if ((proc || observe_path_in_proc(ret->path)) && strcmp(ret->path, itself) != 0) {
		observe_path_copy(w->path, ret->path);
		w->bare = false;
		return true;
	}
	ret->exists =
	        observe_path_in_proc(ret->path) && (look_up_path(o, ret->path, false, itself) ||
	                                            observe_link_is_behind(o, w, ret->path));
	observe_path_fold_dots(ret->path);
	return false;
}

void observe_resolve(struct observer *o, const struct seccomp_notif *n, int dirfd, const char *raw,
                     bool follow, struct resolved *ret)
{
	struct path_way w; /* not zeroed, because it is long and rarely used as a whole */

	w.follow = follow;
	w.bare = false;
	w.from = FROM_ROOT;
	struct path_found found = { 0 };
	enum where where = from_where(o, n, dirfd, raw, &w, &found);
	ret->exists = found.there;
	ret->unseen = false;
	ret->known = where != WHERE_UNKNOWN;
	if (!ret->known) {
		observe_path_copy(ret->path, raw);
		return;
	}
	/* The path leads to the removed directory itself, or to a directory above it: use the path
	 * of the link in /proc. */
	if (where == WHERE_GONE && found.there && !found.unseen) {
		observe_link_name(o, n, dirfd, ret->path);
		(void)observe_path_join(ret->path, ret->path, raw);
		observe_path_tidy(ret->path);
		return;
	}
	observe_path_tidy(w.path);
	if (where == WHERE_GONE) {
		observe_path_fold_dots(w.path);
		observe_path_copy(ret->path, w.path);
		ret->unseen = found.unseen;
		return;
	}
	for (int i = 0; i < OBSERVE_SYMLINKS && resolve_once(o, n, &w, ret); i++) {
	}
}

/* Returns whether the text is the kernel's name of a memfd. No path of the sandbox begins with this
 * text. */
static bool is_memfd(const char *path)
{
	return strncmp(path, "/memfd:", 7) == 0;
}

void observe_resolve_fd(struct observer *o, const struct seccomp_notif *n, int fd,
                        struct resolved *ret)
{
	enum proc_link link = observe_link_of(o, n, fd, ret->path);

	ret->exists = true;
	ret->unseen = false;
	ret->known = link != LINK_NONE;
	if (link == LINK_NONE && ret->path[0] == '\0') {
		snprintf(ret->path, sizeof(ret->path), "fd %d", fd);
	} else if (link != LINK_PATH && !is_memfd(ret->path) &&
	           (ret->known || ret->path[0] == '/')) {
		observe_link_name(o, n, fd, ret->path);
	}
}
