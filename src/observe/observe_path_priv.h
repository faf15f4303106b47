/* observe_path_priv.h - what the files that follow paths share. */
#ifndef OBSERVE_OBSERVE_PATH_PRIV_H
#define OBSERVE_OBSERVE_PATH_PRIV_H

#include "observe/observe.h"

#define OBSERVE_LINK 64 /* bytes of a link in /proc: /proc/PID/task/TID/fd/FD */

/* Flags of openat2() that follow no symlink and stay in the skill's root. */
#define OBSERVE_PLAIN (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS)

/* What a link in /proc leads to. */
enum proc_link {
	LINK_NONE, /* no path */
	LINK_PATH,
	LINK_GONE,    /* a removed directory: its former path, which may be another file's now */
	LINK_RENAMED, /* a file that has lost this name, and has others */
	LINK_DEEP,    /* a path longer than the kernel tells */
};

/* A path while it is followed. */
struct path_way {
	char path[PATH_MAX];
	bool follow; /* also a symlink at its end */
	bool bare;   /* only its last name can be a symlink: its directory comes from the kernel */
	/* Where the path began, and the rest after that. The skill can start there even if the
	 * directory's own path leads through a directory that no user may enter. */
	enum { FROM_ROOT, FROM_THREAD, FROM_LINK } from;
	int dirfd;               /* FROM_THREAD: of the thread, see openat(2) */
	char link[OBSERVE_LINK]; /* FROM_LINK: in the sandbox's /proc */
	char link_rest[PATH_MAX];
	const char *rest; /* link_rest, or the path as the program gave it */
};

/* ---- texts (observe_path_text.c) ---- */

/* Removes "//", "/./" and a final "/". Keeps "..": the name before it may be a symlink. */
void observe_path_tidy(char *path);
/* Removes ".." with the name before it. Only right where nothing exists to be followed. */
void observe_path_fold_dots(char *path);
/* Copies the path, and cuts it if it is too long. */
void observe_path_copy(char out[PATH_MAX], const char *path);
/* Joins with a slash; false: too long. `out` may be `dir` or the memory around `rest`. */
bool observe_path_join(char out[PATH_MAX], const char *dir, const char *rest);
/* The rest of the path after `top`; NULL: the path does not begin with it. */
const char *observe_path_behind(const char *path, const char *top);
bool observe_path_in_proc(const char *path);
/* In the directory of the sandbox's first process, where we would see more than the skill can. */
bool observe_path_in_first(const char *path);

/* ---- links of /proc (observe_link.c) ---- */

/* Reads the link of an fd of the thread; AT_FDCWD: of its working directory. */
enum proc_link observe_link_of(struct observer *o, const struct seccomp_notif *n, int fd,
                               char out[PATH_MAX]);
/* The path of that link itself, for a file without a name of its own: the name that it had may be
 * another file's now. */
void observe_link_name(struct observer *o, const struct seccomp_notif *n, int fd,
                       char out[PATH_MAX]);
/* Replaces "self" by the number of the process, since the thread that asks may have other fds.
 * True: the path changed. */
bool observe_link_number_self(const struct process *p, struct path_way *w);
/* How many bytes of the path are a link to a file: /proc/2/fd/3, /proc/2/task/4/cwd. 0: none. */
size_t observe_link_size(const char *path);
/* Replaces such a link at the beginning of the path by what it leads to. False: there is none. */
bool observe_link_follow(const struct observer *o, struct path_way *w);
/* Whether the link leads to a pipe, a memfd, or a file without a name. */
bool observe_link_is_nameless(const char *link, const char *to);
/* Does the path lead to something below a linked directory that has no path? */
bool observe_link_is_behind(const struct observer *o, const struct path_way *w, const char *path);

#endif
