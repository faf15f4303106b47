/* observe.h - declarations that the source files of the observer share. */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "trace/event.h"
#include "observe/observe_queue.h"
#include "observe/observer.h"
#include "base/bucket.h"
#include "os/unix_maker.h"

#define OBSERVE_PROCESSES 64 /* entries of `processes`; each may hold two fds */
#define OBSERVE_SPARE_FDS 24 /* fds that `processes` must leave free for the supervisor */
#define OBSERVE_PROGRAM   256
#define OBSERVE_ARGS      64   /* arguments of one exec */
#define OBSERVE_ARG_BYTES 4096 /* bytes of all arguments of one exec together */
#define OBSERVE_NAMED     8    /* remembered arguments that name hidden files */

/* A thread of the skill that has made an observed call. The kernel may give the number of an ended
 * thread to a new one, so this entry is valid only as long as `alive` can be read. */
struct process {
	pid_t tid;    /* the thread's number on the host; 0: the slot is free */
	pid_t leader; /* the number of its process on the host */
	pid_t pid;    /* the number of its process in the sandbox */
	pid_t thread; /* the thread's number in the sandbox */
	/* the number of the parent process in the sandbox, at the thread's first observed call */
	pid_t ppid;
	int dir;             /* the thread's directory in /proc; -1: it could not be opened */
	int alive;           /* an open file in `dir`, which can be read while the thread exists */
	uint64_t call;       /* the last notification for which the slot was checked */
	unsigned calls;      /* calls since the fds were examined */
	unsigned look_calls; /* after so many calls the fds are examined again, */
	uint64_t look_ms;    /* and at this clock_ms() */
	/* the thread has called execve since `program` was read, so `program` may be wrong */
	bool renamed;
	char program[OBSERVE_PROGRAM];
};

/* A socket of the skill that listens on an address of the sandbox's network. */
struct service {
	struct address ip;
	uint16_t port;
	bool udp;
	uint64_t until_us; /* clock_us() at which it must be searched for again */
};

/* Where a path leads in the sandbox, as far as it can be followed. */
struct resolved {
	char path[PATH_MAX];
	bool exists;
	bool unseen; /* the observer cannot examine the file, so `exists` is a guess */
	bool known;  /* if false, `path` is only the text that the program gave */
};

/* The decision of the plan about a path (observe_judge.c). */
struct judgement {
	bool allowed;
	bool violation; /* never set if `allowed` */
	enum event_rule rule;
	const char *entry; /* with RULE_ENTRY: the text of the entry */
	enum reason reason;
	const char *remedy; /* may point to `text` */
	/* The errno that the caller gets; 0: the kernel answers. If `allowed`, any other value
	 * is ENOENT or ENOTDIR, because nothing exists at the path. */
	int error;
	char text[PATH_MAX + 64];
};

/* A path argument of a call: its text (`raw`), where it leads (`at`), and the decision about that
 * place (`says`). */
struct path_looked {
	char raw[PATH_MAX];
	struct resolved at;
	struct judgement says;
};

/* The last execve call (observe_exec.c). */
struct exec_asked {
	struct seccomp_notif call;
	struct path_looked l;
	struct event e;
	struct bytes args[OBSERVE_ARGS];
	char bytes[OBSERVE_ARG_BYTES];
	bool goes_on; /* the call was continued, so it may have worked */
	/* not recorded, because our own search through PATH made the call, and the program seems to
	 * be missing */
	bool untold;
};

/* The symlinks in the sandbox's root with which most paths of programs begin (/bin, /lib). The
 * observer may remember the targets of these symlinks, and of no others: the skill cannot change
 * these, because the root is made read-only before the observer starts. */
#define OBSERVE_TOPS      6
#define OBSERVE_TOP_BYTES 64

struct top_link {
	bool known;
	char to[OBSERVE_TOP_BYTES]; /* absolute; "": not a symlink */
};

/* The supervisor's loop answers the calls until the observer's own thread is started; then this
 * thread answers them. The members processes, tops, exec, armed and first may be used only by the
 * one that answers the calls at the time. The queue has its own lock. Only the loop may use the
 * trace. The thread is never started before `armed` is set. */
struct observer {
	struct observer_setup setup;
	int listener;
	int stop; /* eventfd: ends the observer's thread when it waits in poll() */
	bool threaded;
	pthread_t thread;
	struct observe_queue queue;
	uint64_t write_at; /* clock_ms() at which the queue will be emptied; 0: it is empty */
	unsigned calls;
	int root; /* O_PATH: the skill's "/" */
	pid_t first;
	bool armed;        /* the first execve has worked: from now on the skill makes the calls */
	bool thread_execs; /* a thread that is not a leader has asked for an execve */
	bool killed_first;
	bool starved; /* the current call cannot be examined, because fds or memory have run out */
	uint64_t max_files; /* the skill's limit of open files; 0: the caller's own is lower */
	/* A process of the skill had no free fd; the private disk had no room. Both may only be
	 * read after observer_stop(). */
	bool files_full, disk_full;
	uint64_t disk_ms; /* clock_ms() of the last look at the disk: at most one each ms */
	int last_fd;      /* every fd in `processes` must be smaller than this */
	struct unix_maker maker;
	/* ids of the calls that were handed to the maker; 0: the slot is free */
	atomic_ullong handed[MAX_UNIX_CALLS];
	/* the maker's pidfd as long as the run must end if the maker ends; else -1 */
	atomic_int maker_fd;
	unsigned maker_failures; /* how many starts of the maker have failed */
	struct bucket service_looks;
	struct service service;   /* the service of the skill that was found last */
	struct string_list named; /* see observe_named() */
	unsigned named_met;       /* bit i: an attempt on named.v[i] is recorded */
	struct string_list lost;  /* see observe_lost_made() */
	char *lost_relative;      /* the last file in `lost` with a relative name; or NULL */
	struct top_link tops[OBSERVE_TOPS];
	struct exec_asked exec;
	struct process processes[OBSERVE_PROCESSES];
};

/* Returns the thread that makes the call (observe_process.c), never NULL. Members that cannot be
 * read are 0 or "". If the caller ended before we could read anything about it, all members are 0
 * or "". */
const struct process *observe_process(struct observer *o, const struct seccomp_notif *n);
/* Adds the first process to o->processes. It runs our own code until its execve, so nothing about
 * it has to be read from /proc. */
void observe_first(struct observer *o);
/* Returns the number, in the sandbox, of the process to which the thread's pidfd `fd` refers; 0:
 * unknown. */
pid_t observe_pidfd(pid_t tid, int fd);
/* Returns the leader of a thread. Both are numbers in the sandbox. Returns `inner` itself if the
 * leader cannot be read. */
pid_t observe_leader(const struct observer *o, pid_t inner);
/* Notes if the caller has no free fd. Most calls of this function do nothing. */
void observe_look_files(struct observer *o, const struct seccomp_notif *n);
/* Must be called when the caller is about to execute another program: makes the table read its
 * program again. */
void observe_forget(struct observer *o, const struct seccomp_notif *n);
/* Returns whether the errno `error` means that the machine or the supervisor has run out of fds or
 * memory. After such an error a file must not be reported as missing. */
bool observe_is_shortage(int error);
/* Closes all fds in o->processes. */
void observe_processes_done(struct observer *o);

#define OBSERVE_SYMLINKS 40 /* the kernel's limit for one path */

/* Follows `raw` from the thread's `dirfd`, as the kernel would (observe_path.c). With `follow`, a
 * symlink at the end of the path is followed, too. */
void observe_resolve(struct observer *o, const struct seccomp_notif *n, int dirfd, const char *raw,
                     bool follow, struct resolved *ret);
/* Writes to `found` where the longest existing part of an absolute path leads. That part never
 * includes the last name of the path. Returns the rest of the path, or NULL if not even the root
 * can be opened. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX]);
/* Returns the length of `to`, the text of a link in /proc, without its ending " (deleted)"; 0 if it
 * does not end so. */
size_t observe_path_before_deleted(const char *to);
/* What observe_from_deep() and observe_from_dir() found at the end of a path (observe_deep.c). */
struct path_found {
	bool there;
	bool unseen; /* the observer cannot examine the file, so `there` is a guess */
	bool link;   /* following stopped at a symlink that leads to another path */
};

/* Follows `raw` from the thread's `dirfd`. Use it if the path of that directory cannot be used: the
 * path is too long, the directory was removed, or its path does not lead to it. Writes to `out` an
 * absolute path that leads to the same file. Returns false if there is no such path that is short
 * enough. Then `out` is unchanged, but ret->there still says whether the file exists. */
bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       struct path_found *ret);
/* Like observe_from_deep(), but from the directory fd `dir`, which the function takes; -1: there is
 * none. */
bool observe_from_dir(int dir, const char *raw, bool follow, char out[PATH_MAX],
                      struct path_found *ret);
/* Finds the path of the caller's fd; with AT_FDCWD, the path of its working directory. For a file
 * without a name, the path is that of its link in /proc. */
void observe_resolve_fd(struct observer *o, const struct seccomp_notif *n, int fd,
                        struct resolved *ret);

/* Fills `ret` with the decision of the plan about the path (observe_judge.c). `write` says whether
 * the call would change the file. */
void observe_judge(struct observer *o, const struct seccomp_notif *n, const struct resolved *at,
                   bool write, struct judgement *ret);

/* Returns whether the sandbox has put something at `path` so that the skill cannot create a file of
 * this name: a placeholder file, or something that git does not accept as a state. A program that
 * wants to make a directory there is told that the name exists, and fails. */
bool observe_is_placeholder(const struct observer *o, const char *path);

/* Like observe_is_placeholder(), for the name `name` of a state of git, in the repository that
 * contains the directory `dir` (an absolute path). Returns the remedy, or NULL if the sandbox has
 * put nothing there. */
const char *observe_held_state(const struct observer *o, const char *dir, const char *name);

/* Corrects the remedy of a call that makes, removes or renames the name itself. Such a call needs a
 * grant of the directory: a granted file cannot be removed, and granting a missing file would make
 * a directory with its name. */
void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j);

/* Judges an allowed change of a path where the sandbox has nothing (observe_hidden.c). If the file
 * or, with `makes`, its directory is missing, the call can only fail. Then we answer it, so that
 * the line about it is exact. If the owner has the missing file or directory, it is "not granted".
 * `e` is the event as it would be recorded. */
void observe_judge_missing(const struct observer *o, const struct resolved *at, bool makes,
                           const struct event *e, struct judgement *j);
/* Refuses to remove or replace a path that is a grant itself. The kernel would refuse it, too,
 * because the path is a mount. `op` is what happens to the path: OP_UNLINK or OP_RENAME, or
 * OP_RMDIR for a directory. */
void observe_judge_mount(const struct observer *o, const char *path, enum op op,
                         struct judgement *j);

/* Remembers a file that the skill makes in its private home, which is removed after the run. A file
 * that is removed is forgotten. */
void observe_lost_made(struct observer *o, const char *path, const char *raw);
void observe_lost_removed(struct observer *o, const char *path);

/* Remembers the arguments of the skill's command that name hidden files of the owner. Must be
 * called before the skill runs. */
void observe_named(struct observer *o);
/* Forgets such an argument when an attempt on it is recorded as not granted, or the run makes the
 * path itself. */
void observe_named_met(struct observer *o, const char *path);

/* Judges a call that makes a FIFO or socket at this path. Refuses it if the FIFO or socket would
 * stay on the host. `by_maker`: the maker of unix sockets makes it; Landlock's rules for the skill
 * do not apply to the maker. */
void observe_judge_special(const struct observer *o, const struct resolved *at, bool by_maker,
                           struct judgement *j);

/* Judges the use of a unix socket at this path by a skill that may use only its own sockets.
 * Refuses a socket outside of private places. */
void observe_judge_own_socket(const struct observer *o, const struct resolved *at,
                              struct judgement *j);

/* Returns whether the maker must make the unix socket that this call asks for: the skill may use
 * only its own unix sockets, and the maker can be started (observe_unix.c). */
bool observe_unix_own(const struct observer *o, const struct seccomp_data *call);
/* Both functions hand the call over to the maker, which then answers it. observe_unix_socket()
 * returns false if the call is not for the maker or there is no maker; then the call still has to
 * be answered. observe_unix_address() returns 0, or the errno that the caller must get. If too many
 * calls wait for the maker, the caller gets ENOBUFS or EAGAIN. */
bool observe_unix_socket(struct observer *o, const struct seccomp_notif *n);
int observe_unix_address(struct observer *o, const struct seccomp_notif *n,
                         const struct sockaddr_un *to, socklen_t len);

/* Returns whether the path is in the memory, environment or descriptors of the sandbox's first
 * process, which the kernel hides from the skill. */
bool observe_is_closed(const char *path);

/* Handles connect, bind, sendto, sendmsg and sendmmsg (observe_net.c). */
void observe_network(struct observer *o, const struct seccomp_notif *n);

/* Answers a call and records it (observe_calls.c). */
void observe_call(struct observer *o, struct seccomp_notif *n);

/* Must be called when the first execve has worked (observe_exec.c). Records that execve if it is
 * not recorded yet. */
void observe_arm(struct observer *o);

/* Adds the facts about the caller to the event, and records the event if the audit level includes
 * it. */
void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e);

#endif
