/* observe.h - what the files of the observer share. */
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

#define OBSERVE_PROCESSES 64 /* remembered at a time; each holds two fds */
#define OBSERVE_SPARE_FDS 24 /* fds that the table must leave to everything else */
#define OBSERVE_PROGRAM   256
#define OBSERVE_ARGS      64   /* of one exec */
#define OBSERVE_ARG_BYTES 4096 /* of all arguments together */

/* A thread of the skill that has made an observed call. Its number may belong to another thread
 * by the next call: what is known is valid as long as `alive` can be read. */
struct process {
	pid_t tid;     /* on the host; 0: free slot */
	pid_t leader;  /* on the host */
	pid_t pid;     /* in the sandbox */
	pid_t thread;  /* its own number in the sandbox */
	pid_t ppid;    /* in the sandbox, at the thread's first observed call */
	int dir;       /* its directory in /proc; -1: it could not be opened */
	int alive;     /* a file in that directory */
	uint64_t call; /* the last notification for which the slot was checked */
	bool renamed;  /* it has asked for an execve since `program` was read */
	char program[OBSERVE_PROGRAM];
};

/* A socket of the skill's own on an address of the sandbox's network. */
struct service {
	struct address ip;
	uint16_t port;
	bool udp;
	uint64_t until_us; /* clock_us() from which it must be looked for again */
};

/* A path, as far as it can be followed in the sandbox. */
struct resolved {
	char path[PATH_MAX];
	bool exists;
	bool unseen; /* the observer cannot look at it: `exists` is a guess */
	bool known;  /* false: `path` is only what the program gave */
};

/* What the plan says about a path (observe_judge.c). */
struct judgement {
	bool allowed;
	bool violation; /* never set if `allowed` */
	const char *rule;
	enum reason reason;
	const char *remedy; /* may point to `text` */
	int error;          /* the errno to answer with, if it is not allowed */
	char text[PATH_MAX + 64];
};

/* A path argument: as the program gave it, followed, and judged. */
struct path_looked {
	char raw[PATH_MAX];
	struct resolved at;
	struct judgement says;
};

/* The last execve that was asked for (observe_exec.c). */
struct exec_asked {
	struct seccomp_notif call;
	struct path_looked l;
	struct event e;
	struct bytes args[OBSERVE_ARGS];
	char bytes[OBSERVE_ARG_BYTES];
	bool goes_on; /* the kernel answered it: it may have worked */
	bool untold;  /* not recorded: not found, by our own search */
};

/* Symlinks in the sandbox's root with which nearly every path of a program begins. The root is
 * read-only before there is an observer, so only these can be remembered. */
#define OBSERVE_TOPS      6
#define OBSERVE_TOP_BYTES 64

struct top_link {
	bool known;
	char to[OBSERVE_TOP_BYTES]; /* absolute; "": not a symlink */
};

/* The thread that answers calls (the supervisor's loop, or the observer's own thread once there
 * is one) owns processes, tops, exec, armed and first. The queue has a lock of its own. Only the
 * loop uses the trace. The own thread is not started before `armed` is set. */
struct observer {
	struct observer_setup setup;
	int listener;
	int stop; /* eventfd: tells a thread that waits in poll() to end */
	bool threaded;
	pthread_t thread;
	struct observe_queue queue;
	uint64_t write_at; /* clock_ms() at which the queue is emptied; 0: it is empty */
	unsigned calls;
	int root; /* O_PATH: the skill's "/" */
	pid_t first;
	bool armed;        /* the first execve has worked: from now on the skill makes the calls */
	bool thread_execs; /* a thread that is not a leader has asked for an execve */
	bool killed_first;
	bool starved; /* this call cannot be looked at: no fds or no memory */
	int last_fd;  /* fds of `processes` stay below it */
	struct unix_maker maker;
	atomic_ullong handed[MAX_UNIX_CALLS]; /* calls that the maker must answer; 0: none */
	atomic_int maker_fd;                  /* its pidfd while it must not end; -1: none */
	unsigned maker_failures;              /* how many starts of the maker failed */
	struct bucket service_looks;
	struct service service; /* the last service of the skill's own that was found */
	struct top_link tops[OBSERVE_TOPS];
	struct exec_asked exec;
	struct process processes[OBSERVE_PROCESSES];
};

/* The thread that makes the call (observe_process.c). Never NULL. Members that cannot be read are
 * 0 and "", and so are all of them if the caller went away before it was looked at. */
const struct process *observe_process(struct observer *o, const struct seccomp_notif *n);
/* Enters the first process, which is our own code until its execve: nothing has to be read. */
void observe_first(struct observer *o);
/* The process that a pidfd of the thread stands for, by its number in the sandbox; 0: unknown. */
pid_t observe_pidfd(pid_t tid, int fd);
/* The leader of a thread of the sandbox, by their numbers there; the thread itself if that cannot
 * be read. */
pid_t observe_leader(const struct observer *o, pid_t inner);
/* Call it when the caller is about to become another program. */
void observe_forget(struct observer *o, const struct seccomp_notif *n);
/* Has the machine or the supervisor run out of fds or memory? A file that cannot be seen for that
 * reason is not "not there". */
bool observe_is_shortage(int error);
/* Closes all fds of the table. */
void observe_processes_done(struct observer *o);

#define OBSERVE_SYMLINKS 40 /* the kernel's limit for one path */

/* Follows `raw` from the thread's `dirfd`, as the kernel would (observe_path.c). `follow`: also a
 * symlink at its end. */
void observe_resolve(struct observer *o, const struct seccomp_notif *n, int dirfd, const char *raw,
                     bool follow, struct resolved *ret);
/* Follows the longest existing part of an absolute path, without its last name, into `found`.
 * Returns the rest of the path; NULL: not even the root can be seen. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX]);
/* The length of a link's text in /proc before " (deleted)"; 0: it does not end so. */
size_t observe_path_before_deleted(const char *to);
/* What was found where the names of a path ended (observe_deep.c). */
struct path_found {
	bool there;
	bool unseen; /* the observer cannot look at it: `there` is a guess */
	bool link;   /* nothing was looked at yet: a symlink leads to another path */
};

/* For a directory whose path is too long, or that was removed, or that cannot be reached by its
 * path: writes an absolute path that leads to what `raw` means there. Returns false if there is
 * none that is short enough; then `out` is unchanged, but ret->there says whether something is
 * there. */
bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       struct path_found *ret);
/* The same from an fd of the directory, which is taken; -1: there is none. */
bool observe_from_dir(int dir, const char *raw, bool follow, char out[PATH_MAX],
                      struct path_found *ret);
/* Finds the path of a thread's fd; AT_FDCWD: its working directory. A file without a name is
 * named by its link in /proc. */
void observe_resolve_fd(struct observer *o, const struct seccomp_notif *n, int fd,
                        struct resolved *ret);

/* Judges the path for the caller (observe_judge.c). */
void observe_judge(struct observer *o, const struct seccomp_notif *n, const struct resolved *at,
                   bool write, struct judgement *ret);

/* Is the name held by a file of ours, or by something that git does not take for the state that
 * the name means? A program that wants to make a directory there finds that it exists and cannot
 * go on. */
bool observe_is_placeholder(const struct observer *o, const char *path);

/* The remedy if a state of git's with this name is held in the repository around the directory,
 * which has an absolute path; NULL: it is not held. */
const char *observe_held_state(const struct observer *o, const char *dir, const char *name);

/* Corrects the remedy of a call that makes, removes or renames the name itself, which needs a
 * grant of its directory: a granted file cannot be removed, and a missing one would be made as a
 * directory. */
void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j);

/* Judges making a FIFO or socket there: one that would stay on the host is refused. `by_maker`:
 * the maker of unix sockets makes it, to which Landlock's rules for the skill do not apply. */
void observe_judge_special(const struct observer *o, const struct resolved *at, bool by_maker,
                           struct judgement *j);

/* Judges making or reaching a unix socket when the skill may only use its own: outside of private
 * places it is refused. */
void observe_judge_own_socket(const struct observer *o, const struct resolved *at,
                              struct judgement *j);

/* Is it a call that makes a unix socket of the skill's own, if the profile has such sockets
 * (observe_unix.c)? */
bool observe_unix_own(const struct observer *o, const struct seccomp_data *call);
/* Both hand the call over to the maker. observe_unix_socket() returns false if it is not such a
 * call or there is no maker; then nothing was answered. observe_unix_address() returns 0, or an
 * errno to answer with. While the maker has too many calls, the caller is told that there is no
 * room. */
bool observe_unix_socket(struct observer *o, const struct seccomp_notif *n);
int observe_unix_address(struct observer *o, const struct seccomp_notif *n,
                         const struct sockaddr_un *to, socklen_t len);

/* Is the path in the memory, environment or descriptors of the sandbox's first process, which the
 * kernel closes to the skill? */
bool observe_is_closed(const char *path);

/* connect, bind, sendto, sendmsg, sendmmsg (observe_net.c). */
void observe_network(struct observer *o, const struct seccomp_notif *n);

/* Answers a call and records it (observe_calls.c). */
void observe_call(struct observer *o, struct seccomp_notif *n);

/* Call it when the first execve has worked (observe_exec.c): records it, if that was not done
 * yet. */
void observe_arm(struct observer *o);

/* Records the event if the audit level wants it, and adds the caller to it. */
void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e);

#endif
