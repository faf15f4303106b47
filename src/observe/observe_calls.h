/* observe_calls.h - what the handlers of observed calls share. */
#ifndef OBSERVE_OBSERVE_CALLS_H
#define OBSERVE_OBSERVE_CALLS_H

#include "observe/observe.h"

#define NO_ARG (-1)

enum family { CALL_OPEN, CALL_CHANGE, CALL_TWO, CALL_FD, CALL_NETWORK, CALL_EXEC, CALL_SIGNAL };

/* Where a call has its arguments. */
struct call {
	int nr;
	enum family family;
	enum op op;
	int dir; /* NO_ARG: the working directory */
	int path;
	int flags;  /* open flags, or AT_* */
	bool makes; /* the path is not there before */
	int dir2;
	int path2;    /* of a change: what a symlink is to say, or an attribute's name */
	int nofollow; /* the bit in `flags` by which a last symlink is not followed, or one of: */
};

#define NEVER_FOLLOWED (-1) /* the name itself is changed */
#define ONLY_ENTERED   (-2) /* unless a slash is behind it */

/* What becomes of a symlink at the end of a path. */
enum last_link {
	LAST_ITSELF,  /* it is meant itself */
	LAST_ENTERED, /* the same, unless a slash is behind it */
	LAST_FOLLOWED,
};

/* Where a path argument begins, and where it ends. */
struct path_argument {
	int dir;  /* an fd of the caller, or AT_FDCWD */
	int path; /* the place of the argument */
	enum last_link last;
	bool empty; /* AT_EMPTY_PATH: an empty path is `dir` itself */
};

/* The first path of the call, by its flags. */
struct path_argument observe_argument(const struct seccomp_notif *n, const struct call *c);

/* The directory argument at this place. */
int observe_dir(const struct seccomp_notif *n, int at);

/* Reads a path argument and follows it. False: it cannot be read, and the kernel
 * will say so. What was read may be another's if the caller is gone: only
 * observe_answer() knows. */
bool observe_look(struct observer *o, const struct seccomp_notif *n, const struct path_argument *a,
                  struct looked *ret);

/* Then this, with its errno: what cannot be read is refused, and told. */
void observe_unreadable(struct observer *o, const struct seccomp_notif *n, const struct call *c);

/* Says what is decided to the program, and fills the event for the trace. False:
 * the caller is gone, nothing is done, and there is nothing to tell. */
bool observe_answer(struct observer *o, const struct seccomp_notif *n, const struct looked *l,
                    struct event *e);

/* Whether it is a program of git's on the host. */
bool observe_is_git(const char *program);

/* execve and execveat (observe_exec.c). */
void observe_exec(struct observer *o, const struct seccomp_notif *n, const struct call *c);

#endif
