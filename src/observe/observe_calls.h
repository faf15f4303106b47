/* observe_calls.h - what the handlers of observed calls share. */
#ifndef OBSERVE_OBSERVE_CALLS_H
#define OBSERVE_OBSERVE_CALLS_H

#include "observe/observe.h"

enum family { CALL_OPEN, CALL_CHANGE, CALL_TWO, CALL_FD, CALL_NETWORK, CALL_EXEC, CALL_SIGNAL };

/* The place of an argument. */
enum arg { NO_ARG, ARG0, ARG1, ARG2, ARG3, ARG4 };

/* What happens to a symlink at the end of a path. */
enum last_link {
	LAST_FOLLOWED,
	LAST_ITSELF,  /* the symlink itself is meant */
	LAST_ENTERED, /* the symlink itself, unless a slash follows its name */
};

/* What the target of a signal is. */
enum signal_target { TARGET_PROCESS, TARGET_THREAD, TARGET_PIDFD };

/* One observed system call: where its arguments are, and what it does to its path. */
struct observed_call {
	int nr;
	enum family family;
	enum op op;
	enum arg dir;   /* a directory; NO_ARG: the working directory */
	enum arg path;  /* or the fd of CALL_FD */
	enum arg flags; /* open flags, or AT_* */
	enum arg dir2;  /* CALL_TWO: of the second path */
	enum arg path2;
	enum arg text; /* the target of a new symlink, or the name of an attribute */
	enum arg argv; /* CALL_EXEC */
	enum arg signal;
	enum signal_target target;
	bool makes;   /* the path must not exist before */
	bool entry;   /* the name itself changes, which needs its directory */
	bool special; /* the argument after the path is a mode: it may be a FIFO or a socket */
	bool takes;   /* CALL_TWO: the first path goes away; false: it is only read */
	enum last_link last;
	int nofollow; /* the flag that makes a last symlink LAST_ENTERED */
};

/* A path argument: where it begins and where it ends. */
struct path_argument {
	int dir; /* an fd of the caller, or AT_FDCWD */
	enum arg path;
	enum last_link last;
	bool empty; /* AT_EMPTY_PATH: an empty path means `dir` itself */
};

/* The value of an argument that the call has. */
uint64_t observe_arg(const struct seccomp_notif *n, enum arg at);

/* The first path of the call, as its flags have it. */
struct path_argument observe_argument(const struct seccomp_notif *n, const struct observed_call *c);

/* The directory at this place. */
int observe_dir(const struct seccomp_notif *n, enum arg at);

/* Reads a path argument and follows it. False, with errno: it cannot be read, or the observer lacks
 * the means to look at it. If the caller is gone, what was read may belong to another process:
 * only observe_answer() knows. */
bool observe_look(struct observer *o, const struct seccomp_notif *n, const struct path_argument *a,
                  struct path_looked *ret);

/* Refuses a call whose arguments cannot be read, and records that. Call it with the errno of
 * observe_look(). */
void observe_unreadable(struct observer *o, const struct seccomp_notif *n,
                        const struct observed_call *c);

/* Answers the call as judged, and fills the event. False: the caller is gone; nothing was done, and
 * nothing is to be recorded. */
bool observe_answer(struct observer *o, const struct seccomp_notif *n, const struct path_looked *l,
                    struct event *e);

/* True: an empty path, for which the kernel says ENOENT whatever the call is. */
bool observe_is_nowhere(const struct path_looked *l);

/* Whether it is a program of the host's git. */
bool observe_is_git(const char *program);

/* Calls of CALL_OPEN, CALL_CHANGE, CALL_TWO and CALL_FD (observe_files.c). */
void observe_file(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c);

/* execve and execveat (observe_exec.c). */
void observe_exec(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c);

/* A signal, which is only recorded; a call that the profile does not have, which is refused
 * (observe_refuse.c). */
void observe_signal(struct observer *o, const struct seccomp_notif *n,
                    const struct observed_call *c);
void observe_refuse(struct observer *o, struct seccomp_notif *n, uint32_t verdict);

#endif
