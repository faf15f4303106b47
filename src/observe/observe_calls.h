/* observe_calls.h - declarations for the handlers of observed calls. */
#ifndef OBSERVE_OBSERVE_CALLS_H
#define OBSERVE_OBSERVE_CALLS_H

#include "observe/observe.h"

/* CALL_LOOK: the call looks for a file without opening it. It is recorded only if it misses a
 * hidden file of the owner. */
enum family {
	CALL_OPEN,
	CALL_CHANGE,
	CALL_TWO,
	CALL_FD,
	CALL_LOOK,
	CALL_NETWORK,
	CALL_EXEC,
	CALL_SIGNAL,
};

/* The position of an argument in a system call. */
enum arg { NO_ARG, ARG0, ARG1, ARG2, ARG3, ARG4 };

/* How the call treats a symlink at the end of its path. */
enum last_link {
	LAST_FOLLOWED,
	LAST_ITSELF,  /* the call acts on the symlink itself */
	LAST_ENTERED, /* the call acts on the symlink itself, unless a slash follows the symlink's
	                 name */
};

/* What the number means that names the target of a signal. */
enum signal_target { TARGET_PROCESS, TARGET_THREAD, TARGET_PIDFD };

/* One observed system call: the positions of its arguments, and its effect on its path. */
struct observed_call {
	int nr;
	enum family family;
	enum op op;
	enum arg dir;   /* the directory fd; NO_ARG: the working directory */
	enum arg path;  /* the path; for CALL_FD, the fd */
	enum arg flags; /* open flags, or AT_* */
	enum arg dir2;  /* CALL_TWO: the directory fd of the second path */
	enum arg path2;
	enum arg text; /* the target of a new symlink, or the name of an attribute */
	enum arg argv; /* CALL_EXEC */
	enum arg signal;
	enum signal_target target;
	bool makes; /* the call fails if the path exists */
	/* the call makes or removes a name, and so changes the directory of the name */
	bool entry;
	/* the argument after the path is a mode, and the mode may say FIFO or socket */
	bool special;
	bool takes; /* CALL_TWO: true if the first path is removed, false if it is only read */
	enum last_link last;
	/* a flag like AT_SYMLINK_NOFOLLOW: if it is set, LAST_ENTERED replaces `last` */
	int nofollow;
};

/* A path argument: the directory from which it is followed, its position, and how a symlink at its
 * end is treated. */
struct path_argument {
	int dir; /* an fd of the caller, or AT_FDCWD */
	enum arg path;
	enum last_link last;
	bool empty; /* AT_EMPTY_PATH: an empty path means `dir` itself */
};

/* Returns the value of an argument. `at` must not be NO_ARG. */
uint64_t observe_arg(const struct seccomp_notif *n, enum arg at);

/* Returns the first path argument of the call. Takes into account the call's flags, such as
 * AT_SYMLINK_NOFOLLOW. */
struct path_argument observe_argument(const struct seccomp_notif *n, const struct observed_call *c);

/* Returns the directory fd that the call has at this position; AT_FDCWD for NO_ARG. */
int observe_dir(const struct seccomp_notif *n, enum arg at);

/* Reads a path argument and follows it. Returns false with errno if it cannot be read, or if the
 * observer has no fds or memory left to follow it. If the caller has ended, the text may belong to
 * another process; only observe_answer() finds that out. */
bool observe_look(struct observer *o, const struct seccomp_notif *n, const struct path_argument *a,
                  struct path_looked *ret);

/* Refuses a call whose arguments cannot be read, and records the refusal. errno must still be the
 * one that observe_look() set. */
void observe_unreadable(struct observer *o, const struct seccomp_notif *n,
                        const struct observed_call *c);

/* Answers the call as judged, and fills the event. Returns false if the caller has ended: then
 * nothing was answered, and nothing may be recorded. */
bool observe_answer(struct observer *o, const struct seccomp_notif *n, const struct path_looked *l,
                    struct event *e);

/* Returns whether the path leads to no file, because it is empty. The kernel answers such a call
 * with ENOENT. */
bool observe_is_nowhere(const struct path_looked *l);

/* Returns whether `program` is a path of the host's git. */
bool observe_is_git(const char *program);

/* Handles calls of CALL_OPEN, CALL_CHANGE, CALL_TWO and CALL_FD (observe_files.c). */
void observe_file(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c);

/* Handles execve and execveat (observe_exec.c). */
void observe_exec(struct observer *o, const struct seccomp_notif *n, const struct observed_call *c);

/* observe_signal() records a signal and lets it continue. observe_refuse() refuses a call that the
 * seccomp profile does not have (observe_refuse.c). */
void observe_signal(struct observer *o, const struct seccomp_notif *n,
                    const struct observed_call *c);
void observe_refuse(struct observer *o, struct seccomp_notif *n, uint32_t verdict);

#endif
