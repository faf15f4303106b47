/* observe.h - what the parts of the observer share. */
#ifndef AUDIT_OBSERVE_H
#define AUDIT_OBSERVE_H

#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>

#include "audit/event.h"
#include "audit/observe_queue.h"
#include "audit/observer.h"
#include "base/bucket.h"

#define OBSERVE_PROCESSES 256 /* remembered at a time */
#define OBSERVE_PROGRAM   256
#define OBSERVE_ARGS      QUEUE_ARGS
#define OBSERVE_ARG_BYTES 4096 /* of all arguments together */

/* A thread that has asked, as the sandbox knows it. */
struct process {
	pid_t tid;    /* on the host; 0: free */
	pid_t leader; /* on the host */
	pid_t pid;    /* inside */
	pid_t ppid;
	uint64_t seen_ms;
	bool renamed; /* it has asked for an execve since `program` was read */
	char program[OBSERVE_PROGRAM];
};

/* A socket of the skill's own on an address of the sandbox's network. */
struct service {
	struct address ip;
	uint16_t port;
	bool udp;
	uint64_t until_us; /* clock_us(): then it may be gone */
};

/* Directories of the read-only system that were followed once: they stay where
 * they are for as long as the run does. */
#define OBSERVE_DIRS      256
#define OBSERVE_DIR_BYTES 128

struct known_dir {
	char raw[OBSERVE_DIR_BYTES]; /* "": free */
	char path[OBSERVE_DIR_BYTES];
};

/* Who answers (the supervisor's loop, or the thread once there is one) owns
 * processes, dirs, armed and first; the queue has a lock of its own; the trace
 * is the loop's alone. */
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
	bool armed; /* the first process has asked for its execve */
	bool killed_first;
	bool fixed; /* nothing beneath /usr and /etc can be written */
	struct bucket service_looks;
	struct service service; /* of the skill's own: the last that was found */
	struct process processes[OBSERVE_PROCESSES];
	struct known_dir dirs[OBSERVE_DIRS];
};

/* Who asks (observe_process.c). Never NULL; what cannot be read is 0 and "". */
const struct process *observe_process(struct observer *o, pid_t tid);
/* The first process is us until its execve: nothing of it needs to be read. */
void observe_first(struct observer *o, pid_t tid);
/* Whom an fd of the thread stands for, inside; 0: nobody knows. */
pid_t observe_pidfd(pid_t tid, int fd);
/* The process that a thread of the sandbox, by its number there, is of; itself where
 * nobody knows. */
pid_t observe_leader(const struct observer *o, pid_t inner);
/* It is about to become another program. */
void observe_forget(struct observer *o, pid_t tid);

#define OBSERVE_SYMLINKS 40 /* that a path may lead through, as the kernel has it */

/* A path, as far as it can be followed inside of the sandbox. */
struct resolved {
	char path[PATH_MAX];
	bool exists;
	bool known; /* false: `path` is only what the program wrote */
};

/* Follows `raw` from `dirfd` of the thread, as the kernel would (observe_path.c).
 * `follow`: also a symlink at its end. */
void observe_resolve(struct observer *o, pid_t tid, int dirfd, const char *raw, bool follow,
                     struct resolved *ret);
/* The longest part of an absolute path that exists, without its last name, followed into
 * `found`; what is left of the path is returned. NULL: not even the root can be seen. */
const char *observe_above(const struct observer *o, const char *path, char found[PATH_MAX]);
/* How much of a link of /proc is before " (deleted)"; 0: that is not at its end. */
size_t observe_before_deleted(const char *to);
/* Its beginning in a directory whose path is too long to be told, or that was removed
 * (observe_deep.c): an absolute path that leads to what `raw` means. False: there is none that is
 * short enough, and `out` is as it was; *ret_there: but something is there. */
bool observe_from_deep(pid_t tid, int dirfd, const char *raw, bool follow, char out[PATH_MAX],
                       bool *ret_there);
/* The same from an fd of it, which is taken; -1: there is none. */
bool observe_from_dir(int dir, const char *raw, bool follow, char out[PATH_MAX], bool *ret_there);
/* What an fd of the thread is. */
void observe_resolve_fd(struct observer *o, pid_t tid, int fd, struct resolved *ret);

/* What the plan says of a path (observe_judge.c). */
struct judgement {
	bool allowed;
	bool violation; /* allowed: never */
	const char *rule;
	const char *reason;
	const char *remedy; /* may point to `text` */
	int error;          /* to answer with, where it is not allowed */
	char text[PATH_MAX + 64];
};

void observe_judge(struct observer *o, const struct resolved *at, bool write,
                   struct judgement *ret);

/* The name itself is made, removed or renamed, which takes its directory: a file
 * that is granted cannot be removed, and one that is not there would be made as a
 * directory. Corrects the remedy. */
void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j);

/* A FIFO or socket is made there: what would stay on the host is refused. */
void observe_judge_special(const struct observer *o, const struct resolved *at,
                           struct judgement *j);

/* connect, bind, sendto, sendmsg, sendmmsg (observe_net.c). */
void observe_network(struct observer *o, const struct seccomp_notif *n);

/* Answers a call and tells of it (observe_calls.c). */
void observe_call(struct observer *o, struct seccomp_notif *n);

/* Writes the event down, if the level wants it; adds who it was. */
void observe_tell(struct observer *o, const struct seccomp_notif *n, struct event *e);

#endif
