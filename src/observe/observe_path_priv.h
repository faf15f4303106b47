/* observe_path_priv.h - declarations for the source files that follow paths. */
#ifndef OBSERVE_OBSERVE_PATH_PRIV_H
#define OBSERVE_OBSERVE_PATH_PRIV_H

#include "observe/observe.h"

#define OBSERVE_LINK 64 /* bytes of a link in /proc: /proc/PID/task/TID/fd/FD */

/* Flags of openat2() that follow no symlink and stay in the skill's root. */
#define OBSERVE_PLAIN (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS)

/* The kind of target that a link in /proc has. */
enum proc_link {
	LINK_NONE, /* the target has no path */
	LINK_PATH,
	/* a removed directory: the text is its former path, where another file may be now */
	LINK_GONE,
	/* a file whose name in the link was removed, but which still has another name */
	LINK_RENAMED,
	LINK_DEEP, /* a path that is too long for the kernel to return */
};

/* The state of a path that is being followed. */
struct path_way {
	char path[PATH_MAX];
	bool follow; /* follow a symlink at the end of the path, too */
	/* only the last name can be a symlink: the kernel gave us the path of its directory */
	bool bare;
	/* The directory from which the path is followed, and the rest of the path after it. The
	 * skill can use that directory even if the directory's own path leads through a directory
	 * that no user may enter. */
	enum { FROM_ROOT, FROM_THREAD, FROM_LINK } from;
	int dirfd;               /* FROM_THREAD: the thread's directory fd, as in openat(2) */
	char link[OBSERVE_LINK]; /* FROM_LINK: the link in the sandbox's /proc */
	char link_rest[PATH_MAX];
	const char *rest; /* link_rest, or the path as the program gave it */
};

/* ---- texts (observe_path_text.c) ---- */

/* Removes "//", "/./" and a final "/". Keeps "..": the name before it may be a symlink. */
void observe_path_tidy(char *path);
/* Removes each ".." together with the name before it. Use it only for a path without symlinks: if
 * the name before ".." were a symlink, the result would be wrong. */
void observe_path_fold_dots(char *path);
/* Copies the path. Cuts it if it is too long. */
void observe_path_copy(char out[PATH_MAX], const char *path);
/* Joins `dir` and `rest` with a slash. Returns false if the result is too long. `out` may be the
 * same memory as `dir`, or may contain `rest`. */
bool observe_path_join(char out[PATH_MAX], const char *dir, const char *rest);
/* Returns the rest of the path after `top`, or NULL if the path does not begin with `top`. */
const char *observe_path_behind(const char *path, const char *top);
bool observe_path_in_proc(const char *path);
/* Returns whether the path is in the /proc directory of the sandbox's first process, where we could
 * see more than the skill. */
bool observe_path_in_first(const char *path);

/* ---- links of /proc (observe_link.c) ---- */

/* Reads the link in /proc of a thread's fd; with AT_FDCWD, the link of the thread's working
 * directory. */
enum proc_link observe_link_of(struct observer *o, const struct seccomp_notif *n, int fd,
                               char out[PATH_MAX]);
/* Writes the path of that link itself, such as /proc/2/fd/3. This path is used for a file without a
 * name, because another file may have the file's former name now. */
void observe_link_name(struct observer *o, const struct seccomp_notif *n, int fd,
                       char out[PATH_MAX]);
/* Replaces /proc/self, /proc/thread-self or /dev/fd at the beginning of the path by the directory
 * of the calling process or thread: for the observer, "self" would be another process. Returns true
 * if the path changed. */
bool observe_link_number_self(const struct process *p, struct path_way *w);
/* Returns how many bytes at the beginning of the path are a link to a file, as in /proc/2/fd/3 or
 * /proc/2/task/4/cwd; 0: none. */
size_t observe_link_size(const char *path);
/* Replaces the link to a file (observe_link_size()) at the beginning of the path by its target.
 * Returns false if the path begins with no link that can be followed. */
bool observe_link_follow(const struct observer *o, struct path_way *w);
/* Returns whether the link leads to a pipe, a memfd, or a file without a name. */
bool observe_link_is_nameless(const char *link, const char *to);
/* Returns whether the path leads to an existing file below a linked directory that has no path. */
bool observe_link_is_behind(const struct observer *o, const struct path_way *w, const char *path);

#endif
