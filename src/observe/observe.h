/* observe.h - what the parts of the observer share. */
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
#define OBSERVE_SPARE_FDS 24 /* that these leave to everything else */
#define OBSERVE_PROGRAM   256
#define OBSERVE_ARGS      64   /* of one exec */
#define OBSERVE_ARG_BYTES 4096 /* of all arguments together */

/* A thread that has asked, as the sandbox knows it. Its number may be another's by the
 * next call: what is known holds for as long as `alive` can be read. */
struct process {
	pid_t tid;     /* on the host; 0: free */
	pid_t leader;  /* on the host */
	pid_t pid;     /* inside */
	pid_t thread;  /* inside: its own number */
	pid_t ppid;    /* inside, as it was when the thread asked for the first time */
	int dir;       /* of a used slot: its directory of /proc; -1: none could be had */
	int alive;     /* and a file in it */
	uint64_t call; /* the notification for which it was checked last */
	bool renamed;  /* it has asked for an execve since `program` was read */
	char program[OBSERVE_PROGRAM];
};

/* A socket of the skill's own on an address of the sandbox's network. */
struct service {
	struct address ip;
	uint16_t port;
	bool udp;
	uint64_t until_us; /* clock_us(): then it may be gone */
};

/* A path, as far as it can be followed inside of the sandbox. */
struct resolved {
	char path[PATH_MAX];
	bool exists;
	bool unseen; /* it cannot be looked at: `exists` is a guess */
	bool known;  /* false: `path` is only what the program wrote */
};

/* What the plan says of a path (observe_judge.c). */
struct judgement {
	bool allowed;
	bool violation; /* allowed: never */
	const char *rule;
	enum reason reason;
	const char *remedy; /* may point to `text` */
	int error;          /* to answer with, where it is not allowed */
	char text[PATH_MAX + 64];
};

/* A path argument: as it was written, followed, judged. */
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
	bool goes_on; /* the kernel was left to answer: it may have worked */
	bool untold;  /* nothing was found there, and the first process is still ours */
};

/* Symlinks of the sandbox's root that nearly every path of a program begins with. The
 * root is read-only before there is an observer: only these can be remembered. */
#define OBSERVE_TOPS      6
#define OBSERVE_TOP_BYTES 64

struct top_link {
	bool known;
	char to[OBSERVE_TOP_BYTES]; /* absolute; "": not a symlink */
};

/* Who answers (the supervisor's loop, or the thread once there is one) owns
 * processes, tops, exec, armed and first; the queue has a lock of its own; the trace
 * is the loop's alone. Until it is armed there is no thread. */
struct observer {
	struct observer_setup setup;
	int listener;
	int stop; /* eventfd: the thread is to end, if it waits in poll() */
	bool threaded;
	pthread_t thread;
	struct observe_queue queue;
	uint64_t write_at; /* clock_ms(): when the queue is to be emptied; 0: it is empty */
	unsigned calls;
	int root; /* O_PATH: the skill's "/" */
	pid_t first;
	bool armed;        /* the first execve has worked: what asks is the skill */
	bool thread_execs; /* a thread that is not its leader has asked for an execve */
	bool killed_first;
	bool starved; /* this call cannot be looked at: there are no fds, or no memory */
	int last_fd;  /* fds of the table stay below it */
	struct unix_maker maker;
	atomic_ullong handed[MAX_UNIX_CALLS]; /* calls that the maker is to answer; 0: none */
	atomic_int maker_fd;     /* its pidfd, while its end would be a failure; -1: none */
	unsigned maker_failures; /* starts of it that failed */
	struct bucket service_looks;
	struct service service; /* of the skill's own: the last that was found */
	struct top_link tops[OBSERVE_TOPS];
	struct exec_asked exec;
	struct process processes[OBSERVE_PROCESSES];
};

/* Who asks (observe_process.c). Never NULL; what cannot be read is 0 and "", and so is
 * everything of a caller that is gone before it was looked at. */
const struct process *observe_process(struct observer *o, const struct seccomp_notif *n);
/* The first process is us until its execve: nothing of it needs to be read. */
void observe_first(struct observer *o);
/* Whom an fd of the thread stands for, inside; 0: nobody knows. */
pid_t observe_pidfd(pid_t tid, int fd);
/* The process that a thread of the sandbox, by its number there, is of; itself where
 * nobody knows. */
pid_t observe_leader(const struct observer *o, pid_t inner);
/* It is about to become another program. */
void observe_forget(struct observer *o, const struct seccomp_notif *n);
/* The machine or the supervisor has run out of something: what cannot be seen then is not
 * "not there". */
bool observe_is_shortage(int error);
/* Closes what is held of all of them. */
void observe_processes_done(struct observer *o);

#define OBSERVE_SYMLINKS 40 /* that a path may lead through, as the kernel has it */

/* Follows `raw` from `dirfd` of the thread, as the kernel would (observe_path.c).
 * `follow`: also a symlink at its end. */
void observe_resolve(struct observer *o, const struct seccomp_notif *n, int dirfd, const char *raw,
                     bool follow, struct resolved *ret);
/* The longest part of an absolute path that exists, without its last name, followed into
 * `found`; what is left of the path is returned. NULL: not even the root can be seen. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX]);
/* How much of a link of /proc is before " (deleted)"; 0: that is not at its end. */
size_t observe_path_before_deleted(const char *to);
/* What was found where the names of a path ended (observe_deep.c). */
struct path_found {
	bool there;
	bool unseen; /* it cannot be looked at: `there` is a guess */
	bool link;   /* nothing was looked at yet: a symlink leads to another path */
};

/* Its beginning in a directory whose path is too long to be told, or that was removed, or that
 * cannot be reached by its path: an absolute path that leads to what `raw` means. False: there is
 * none that is short enough, and `out` is as it was; ret->there: but something is there. */
bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       struct path_found *ret);
/* The same from an fd of it, which is taken; -1: there is none. */
bool observe_from_dir(int dir, const char *raw, bool follow, char out[PATH_MAX],
                      struct path_found *ret);
/* What an fd of the thread is; AT_FDCWD: its working directory. What has no name of its own is
 * named by its link in /proc. */
void observe_resolve_fd(struct observer *o, const struct seccomp_notif *n, int fd,
                        struct resolved *ret);

/* What the plan says of it to who asks (observe_judge.c). */
void observe_judge(struct observer *o, const struct seccomp_notif *n, const struct resolved *at,
                   bool write, struct judgement *ret);

/* A name that is held by a file of ours, or by what git does not take for the state that the name
 * means: a program that makes a directory of it finds it there, and cannot go on. */
bool observe_is_placeholder(const struct observer *o, const char *path);

/* What to do if a state of git's of this name is held in the repository around the directory, which
 * has an absolute path; NULL: it is not. */
const char *observe_held_state(const struct observer *o, const char *dir, const char *name);

/* The name itself is made, removed or renamed, which takes its directory: a file
 * that is granted cannot be removed, and one that is not there would be made as a
 * directory. Corrects the remedy. */
void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j);

/* A FIFO or socket is made there: what would stay on the host is refused. `by_maker`: the maker
 * of unix sockets makes it, to whom Landlock's rules for the skill do not apply. */
void observe_judge_special(const struct observer *o, const struct resolved *at, bool by_maker,
                           struct judgement *j);

/* The skill has unix sockets of its own alone: one is made or reached there. What is no private
 * place is refused. */
void observe_judge_own_socket(const struct observer *o, const struct resolved *at,
                              struct judgement *j);

/* A call that makes a unix socket of its own, if the profile has any (observe_unix.c). */
bool observe_unix_own(const struct observer *o, const struct seccomp_data *call);
/* Both hand the call over to the maker. False: it is not one of these, or there is no maker, and
 * nothing was answered; of the second, an errno to answer with. While the maker has too many calls,
 * the caller is told that there is no room. */
bool observe_unix_socket(struct observer *o, const struct seccomp_notif *n);
int observe_unix_address(struct observer *o, const struct seccomp_notif *n,
                         const struct sockaddr_un *to, socklen_t len);

/* In the memory, environment or descriptors of the sandbox's first process, which the kernel
 * closes to the skill. */
bool observe_is_closed(const char *path);

/* connect, bind, sendto, sendmsg, sendmmsg (observe_net.c). */
void observe_network(struct observer *o, const struct seccomp_notif *n);

/* Answers a call and tells of it (observe_calls.c). */
void observe_call(struct observer *o, struct seccomp_notif *n);

/* The first execve has worked (observe_exec.c): tells of it, if that was not done yet. */
void observe_arm(struct observer *o);

/* Writes the event down, if the level wants it; adds who it was. */
void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e);

#endif
