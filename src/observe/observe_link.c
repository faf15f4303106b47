/* observe_link.c - follows the links in a process's directory of /proc, such as /proc/2/fd/3, cwd,
 * root and exe. Such a link leads to a file and not to a path, so the kernel does not follow it for
 * us within the skill's root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/observe_path_priv.h"
#include "base/own.h"
#include "os/file.h"

/* Returns whether the path leads to the file that `st` describes. If it does, "(deleted)" at the
 * end of the path is part of the file's own name. */
static bool is_named(const struct observer *o, const char *path, const struct stat *st)
{
	struct stat found;
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, OBSERVE_PLAIN);

	return fd >= 0 && fstat(fd, &found) == 0 && found.st_dev == st->st_dev &&
	       found.st_ino == st->st_ino;
}

/* Reads a link in a process's directory of /proc. Returns the kind of its target, and the path in
 * `out`. */
static enum proc_link read_proc_link(const struct observer *o, int at, const char *link,
                                     char out[PATH_MAX])
{
	struct stat st;
	ssize_t n = readlinkat(at, link, out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = '\0';
	if (n <= 0 || out[0] != '/') {
		return n < 0 && errno == ENAMETOOLONG ? LINK_DEEP : LINK_NONE;
	}
	size_t was = observe_path_before_deleted(out);
	if (was == 0 || fstatat(at, link, &st, 0) != 0 || is_named(o, out, &st)) {
		return LINK_PATH;
	}
	if (S_ISDIR(st.st_mode)) {
		out[was] = '\0';
		return LINK_GONE;
	}
	return st.st_nlink > 0 ? LINK_RENAMED : LINK_NONE;
}

enum proc_link observe_link_of(struct observer *o, const struct seccomp_notif *n, int fd,
                               char out[PATH_MAX])
{
	const struct process *p = observe_process(o, n);
	char name[16] = "cwd", link[48];

	if (fd != AT_FDCWD) {
		snprintf(name, sizeof(name), "fd/%d", fd);
	}
	if (p->dir >= 0) {
		return read_proc_link(o, p->dir, name, out);
	}
	snprintf(link, sizeof(link), "/proc/%u/%s", n->pid, name);
	return read_proc_link(o, AT_FDCWD, link, out);
}

void observe_link_name(struct observer *o, const struct seccomp_notif *n, int fd,
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

bool observe_link_number_self(const struct process *p, struct path_way *w)
{
	char self[48];
	const char *rest = observe_path_behind(w->path, "/proc/thread-self");

	snprintf(self, sizeof(self), "/proc/%d", p->pid);
	if (rest != NULL) {
		snprintf(self, sizeof(self), "/proc/%d/task/%d", p->pid, p->thread);
	} else if ((rest = observe_path_behind(w->path, "/proc/self")) == NULL &&
	           (rest = observe_path_behind(w->path, "/dev/fd")) != NULL) {
		snprintf(self, sizeof(self), "/proc/%d/fd", p->pid);
	}
	if (rest == NULL || (rest[0] == '\0' && !w->follow)) {
		return false;
	}
	return observe_path_join(w->path, self, rest[0] == '/' ? rest + 1 : rest);
}

static size_t count_digits(const char *s)
{
	return strspn(s, "0123456789");
}

size_t observe_link_size(const char *path)
{
	static const char *const NAMES[] = { "/cwd", "/root", "/exe" };
	const char *at = path + strlen("/proc/");

	if (!observe_path_in_proc(path) || count_digits(at) == 0) {
		return 0;
	}
	at += count_digits(at);
	if (strncmp(at, "/task/", 6) == 0 && count_digits(at + 6) > 0) {
		at += 6 + count_digits(at + 6);
	}
	const char *end = strncmp(at, "/fd/", 4) == 0 && count_digits(at + 4) > 0
	                          ? at + 4 + count_digits(at + 4)
	                          : NULL;
	for (size_t i = 0; end == NULL && i < ARRAY_LEN(NAMES); i++) {
		end = observe_path_behind(at, NAMES[i]);
	}
	return end != NULL && (*end == '/' || *end == '\0') ? (size_t)(end - path) : 0;
}

bool observe_link_follow(const struct observer *o, struct path_way *w)
{
	char link[OBSERVE_LINK], to[PATH_MAX];
	size_t n = observe_link_size(w->path);
	bool whole = w->path[n] == '\0';
	const char *rest = whole ? "" : w->path + n + 1;
	struct stat st;

	if (n == 0 || n >= sizeof(link) || observe_path_in_first(w->path) ||
	    (whole && !w->follow)) {
		return false;
	}
	memcpy(link, w->path, n);
	link[n] = '\0';
	/* Only a LINK_PATH is followed here; step_from() follows a link to a removed directory. If
	 * the path goes on after the link, the link must lead to a directory, or the path leads
	 * nowhere. */
	if (read_proc_link(o, o->root, link + 1, to) != LINK_PATH ||
	    (!whole && (fstatat(o->root, link + 1, &st, 0) != 0 || !S_ISDIR(st.st_mode)))) {
		return false;
	}
	observe_path_copy(w->link_rest, rest);
	/* "/" and "x" are joined as "" and "x", but the root itself must stay "/". */
	if (!observe_path_join(w->path, strcmp(to, "/") == 0 && rest[0] != '\0' ? "" : to, rest)) {
		return false;
	}
	memcpy(w->link, link, n + 1);
	w->rest = w->link_rest;
	w->from = FROM_LINK;
	/* An fd of a symlink refers to the symlink itself. */
	w->follow = w->follow && !whole;
	w->bare = false;
	return true;
}

bool observe_link_is_nameless(const char *link, const char *to)
{
	return observe_path_in_proc(link) && link[6] >= '0' && link[6] <= '9' &&
	       (to[0] != '/' || observe_path_before_deleted(to) > 0);
}

bool observe_link_is_behind(const struct observer *o, const struct path_way *w, const char *path)
{
	char link[64], out[PATH_MAX];
	size_t n = observe_link_size(path);
	struct path_found found = { 0 };

	if (n == 0 || n >= sizeof(link) || path[n] != '/' || observe_path_in_first(path)) {
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
