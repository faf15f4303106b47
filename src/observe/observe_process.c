/* observe_process.c - reads the facts about a calling thread from the host's /proc, once for each
 * thread.
 *
 * The kernel reuses the numbers of threads, and a skill can use up all of them in a second. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "observe/observe.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/notify.h"

/* How often the fds of a thread are looked at; a look takes about 2 us, a call at least 10 us. */
#define LOOK_CALLS 64
#define LOOK_MS    5

/* Returns the last number of the line of /proc/PID/status that begins with `key`: the number in the
 * innermost namespace. Returns 0 if there is none. */
static pid_t read_last_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	pid_t last = 0;

	if (line == NULL) {
		return 0;
	}
	line += strlen(key);
	for (char *end; *line != '\0' && *line != '\n'; line = end) {
		long v = strtol(line, &end, 10);
		if (end == line) {
			break;
		}
		last = (pid_t)v;
	}
	return last;
}

static bool read_text(int at, const char *path, char *out, size_t size)
{
	auto_fd fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static struct process *find_slot(struct observer *o, pid_t tid)
{
	return &o->processes[(unsigned)tid % OBSERVE_PROCESSES];
}

static void drop_process(struct process *p)
{
	if (p->tid != 0) {
		own_close(&p->alive);
		own_close(&p->dir);
	}
	*p = (struct process){ .dir = -1, .alive = -1 };
}

bool observe_is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* Opens the thread's directory in /proc and a file in it. Both fds stay with this thread even if
 * its number is reused. The file is the cheapest one to read in /proc, and reading it fails with
 * ESRCH when the thread has ended. */
static void open_both(struct process *p)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", p->tid);
	p->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	p->alive = p->dir < 0 ? -1 : openat(p->dir, "oom_score_adj", O_RDONLY | O_CLOEXEC);
}

/* Closes all fds of the table. The other members of the table stay valid for the call that is being
 * answered; for later calls they are read again. */
static void release_all(struct observer *o)
{
	for (size_t i = 0; i < OBSERVE_PROCESSES; i++) {
		if (o->processes[i].tid != 0) {
			own_close(&o->processes[i].alive);
			own_close(&o->processes[i].dir);
		}
	}
}

/* Opens the fds of a slot for the thread. A skill with many threads must not use up the
 * supervisor's fds, without which the observer sees nothing; so if few fds are left, first closes
 * those of all slots. */
static void hold_process(struct observer *o, struct process *p, pid_t tid)
{
	drop_process(p);
	p->tid = tid;
	open_both(p);
	if (p->alive >= o->last_fd || (p->alive < 0 && observe_is_shortage(errno))) {
		release_all(o);
		open_both(p);
		o->starved |= p->alive < 0 && observe_is_shortage(errno);
	}
}

/* Returns whether the number still belongs to the thread for which the slot was filled. If so, the
 * number was never reused, and everything that was read under it is about that thread. */
static bool is_same(const struct process *p, pid_t tid)
{
	char c;

	return tid != 0 && p->tid == tid && p->alive >= 0 && pread(p->alive, &c, 1, 0) > 0;
}

/* Returns the number of the parent process in the sandbox. Most parents are in the table, because
 * they have made observed calls themselves. */
static pid_t find_parent(struct observer *o, pid_t parent, pid_t inner)
{
	const struct process *known = find_slot(o, parent);
	char path[32], status[4096];

	if (is_same(known, parent)) {
		return known->pid;
	}
	/* The sandbox's own /proc contains the sandbox's numbers. */
	snprintf(path, sizeof(path), "proc/%d/status", inner);
	return read_text(o->root, path, status, sizeof(status))
	               ? read_last_number(status, "\nPPid:")
	               : 0;
}

static void read_program(struct process *p)
{
	ssize_t n = readlinkat(p->dir, "exe", p->program, sizeof(p->program) - 1);

	p->program[n > 0 ? n : 0] = '\0';
	p->renamed = false;
}

static void look_up(struct observer *o, struct process *p, const struct seccomp_notif *n)
{
	char status[4096];

	hold_process(o, p, (pid_t)n->pid);
	if (p->dir >= 0 && read_text(p->dir, "status", status, sizeof(status))) {
		p->leader = read_last_number(status, "\nTgid:");
		p->pid = read_last_number(status, "\nNStgid:");
		p->thread = read_last_number(status, "\nNSpid:");
		p->ppid = find_parent(o, read_last_number(status, "\nPPid:"), p->pid);
		read_program(p);
	}
	if (!notify_valid(o->listener, n)) {
		drop_process(p); /* the number may have been reused while we read */
	}
}

const struct process *observe_process(struct observer *o, const struct seccomp_notif *n)
{
	pid_t tid = (pid_t)n->pid;
	struct process *p = find_slot(o, tid);

	if (p->tid == tid && p->call == n->id) {
		return p;
	}
	if (p->tid == tid && (p->renamed || o->thread_execs)) {
		read_program(p);
	}
	if (!is_same(p, tid)) {
		look_up(o, p, n);
	}
	p->call = n->id;
	return p;
}

void observe_first(struct observer *o)
{
	struct process *p = find_slot(o, o->first);
	struct rlimit files;

	(void)getrlimit(RLIMIT_NOFILE, &files);
	o->last_fd = files.rlim_cur > INT_MAX ? INT_MAX : (int)files.rlim_cur - OBSERVE_SPARE_FDS;
	if (files.rlim_max >= o->setup.plan->res.max_open_files) {
		o->max_files = o->setup.plan->res.max_open_files;
	}
	hold_process(o, p, o->first);
	p->leader = o->first;
	p->pid = p->thread = 2;
	p->ppid = 1;
}

static bool has_fd(const struct process *p, uint64_t fd)
{
	char path[32];

	snprintf(path, sizeof(path), "fd/%" PRIu64, fd);
	return p->dir >= 0 && faccessat(p->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A new fd gets the lowest free number. So the last number is in use if all are, and as long as a
 * number far below it is free, the next calls cannot use up all. A program that finds no free fd
 * makes other calls, for example to report the error. */
void observe_look_files(struct observer *o, const struct seccomp_notif *n)
{
	const unsigned step =
	        o->max_files / 2 < LOOK_CALLS ? (unsigned)o->max_files / 2 : LOOK_CALLS;
	uint64_t now = clock_ms();

	if (o->files_full || o->max_files == 0) {
		return;
	}
	(void)observe_process(o, n);
	struct process *p = find_slot(o, (pid_t)n->pid);
	if (++p->calls < p->look_calls && now < p->look_ms) {
		return;
	}
	bool near = has_fd(p, o->max_files - step);
	p->calls = 0;
	p->look_calls = near ? 1 : step;
	p->look_ms = now + LOOK_MS;
	o->files_full = near && has_fd(p, o->max_files - 1);
}

pid_t observe_pidfd(pid_t tid, int fd)
{
	char path[48], text[512];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	(void)read_text(AT_FDCWD, path, text, sizeof(text));
	return read_last_number(text, "\nNSpid:");
}

pid_t observe_leader(const struct observer *o, pid_t inner)
{
	char path[32], status[4096];

	/* This is the sandbox's own /proc. The skill cannot mount anything over it. */
	snprintf(path, sizeof(path), "proc/%d/status", inner);
	pid_t leader = inner > 0 && read_text(o->root, path, status, sizeof(status))
	                       ? read_last_number(status, "\nTgid:")
	                       : 0;
	return leader > 0 ? leader : inner;
}

void observe_forget(struct observer *o, const struct seccomp_notif *n)
{
	struct process *p = find_slot(o, (pid_t)n->pid);

	if (p->tid == (pid_t)n->pid && p->leader == p->tid) {
		p->renamed = true;
		return;
	}
	/* A thread that executes a program becomes the leader of its process. Until then, the
	 * former leader can still make calls, and the observer does not see when the change
	 * happens. So from now on the program is read again at every call. */
	o->thread_execs = true;
}

void observe_processes_done(struct observer *o)
{
	for (size_t i = 0; i < OBSERVE_PROCESSES; i++) {
		if (o->processes[i].tid != 0) {
			drop_process(&o->processes[i]);
		}
	}
}
