/* observe_process.c - who asks: /proc of the host, read once per process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/observe.h"
#include "base/own.h"
#include "os/clock.h"

#define STALE_MS 2000 /* after this a number may be another process's */

/* The last of the numbers in a line of status: the innermost namespace's. */
static pid_t last_number(const char *status, const char *key)
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

static bool read_status(pid_t tid, char *out, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	return read_text(AT_FDCWD, path, out, size);
}

static struct process *slot_of(struct observer *o, pid_t tid)
{
	return &o->processes[(unsigned)tid % OBSERVE_PROCESSES];
}

/* Mostly the parent has asked something itself, a moment ago. */
static pid_t inner_pid(struct observer *o, pid_t tid)
{
	const struct process *known = slot_of(o, tid);
	char status[4096];

	if (known->tid == tid && clock_ms() - known->seen_ms <= STALE_MS) {
		return known->pid;
	}
	return tid > 0 && read_status(tid, status, sizeof(status))
	               ? last_number(status, "\nNStgid:")
	               : 0;
}

static void read_program(struct process *p)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", p->tid);
	ssize_t n = readlink(path, p->program, sizeof(p->program) - 1);
	p->program[n > 0 ? n : 0] = '\0';
	p->renamed = false;
}

static void look_up(struct observer *o, struct process *p, pid_t tid)
{
	char status[4096];

	*p = (struct process){ .tid = tid, .seen_ms = clock_ms() };
	if (!read_status(tid, status, sizeof(status))) {
		return; /* it is gone */
	}
	p->leader = last_number(status, "\nTgid:");
	p->pid = last_number(status, "\nNStgid:");
	p->ppid = inner_pid(o, last_number(status, "\nPPid:"));
	read_program(p);
}

const struct process *observe_process(struct observer *o, pid_t tid)
{
	struct process *p = slot_of(o, tid);

	if (p->tid != tid || clock_ms() - p->seen_ms > STALE_MS) {
		look_up(o, p, tid);
	} else if (p->renamed) {
		read_program(p);
	}
	return p;
}

void observe_first(struct observer *o, pid_t tid)
{
	*slot_of(o, tid) = (struct process){
		.tid = tid, .leader = tid, .pid = 2, .ppid = 1, .seen_ms = clock_ms()
	};
}

pid_t observe_pidfd(pid_t tid, int fd)
{
	char path[48], text[512];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	(void)read_text(AT_FDCWD, path, text, sizeof(text));
	return last_number(text, "\nNSpid:");
}

pid_t observe_leader(const struct observer *o, pid_t inner)
{
	char path[32], status[4096];

	/* The sandbox's own /proc, which nothing can be mounted over. */
	snprintf(path, sizeof(path), "proc/%d/status", inner);
	pid_t leader = inner > 0 && read_text(o->root, path, status, sizeof(status))
	                       ? last_number(status, "\nTgid:")
	                       : 0;
	return leader > 0 ? leader : inner;
}

void observe_forget(struct observer *o, pid_t tid)
{
	struct process *p = slot_of(o, tid);
	pid_t leader = p->tid == tid ? p->leader : 0;

	/* Its numbers stay, and they are what takes long to read. */
	if (leader == tid) {
		p->renamed = true;
		return;
	}
	/* A thread that becomes a program goes on as its leader. */
	p->tid = 0;
	if (leader > 0 && slot_of(o, leader)->tid == leader) {
		slot_of(o, leader)->tid = 0;
	}
}
