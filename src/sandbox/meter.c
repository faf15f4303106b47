/* meter.c - measures the CPU time of a sandbox, from its control group or from /proc. */
#include "sandbox/meter.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"

/* if a sum is lower than that of the last measurement, the highest sum of WALKS walks counts */
#define WALKS 3

/* Fields of /proc/PID/stat, counted from the state, which is the third field. */
enum { STAT_UTIME = 11, STAT_STIME, STAT_CUTIME, STAT_CSTIME, STAT_THREADS = 17, STAT_START = 19 };

struct stat_line {
	uint64_t own_us;
	uint64_t waited_us; /* CPU time of the children that the process has waited for */
	uint64_t threads;
	uint64_t start;
};

struct metered {
	pid_t pid;
	uint64_t us;
};

/* The processes of one walk. */
struct meter_walk {
	struct metered *v;
	size_t n, room;
};

static uint64_t ticks_us(uint64_t ticks)
{
	static long per_second;

	per_second = per_second > 0 ? per_second : sysconf(_SC_CLK_TCK);
	return per_second > 0 ? ticks * 1000000 / (uint64_t)per_second : 0;
}

static bool read_stat(pid_t pid, struct stat_line *ret)
{
	char path[32], text[1024];
	uint64_t field[STAT_START + 1] = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0) {
		return false;
	}
	text[n] = '\0';
	char *p = strrchr(text, ')'); /* the program's name may contain anything, even ')' */
	if (p == NULL || strlen(p) < 4) {
		return false;
	}
	p += 3; /* after the state */
	for (size_t i = 1; i <= STAT_START; i++) {
		field[i] = strtoull(p, &p, 10);
	}
	*ret = (struct stat_line){
		.own_us = ticks_us(field[STAT_UTIME] + field[STAT_STIME]),
		.waited_us = ticks_us(field[STAT_CUTIME] + field[STAT_CSTIME]),
		.threads = field[STAT_THREADS],
		.start = field[STAT_START],
	};
	return true;
}

uint64_t meter_started(pid_t pid)
{
	struct stat_line line;

	return read_stat(pid, &line) ? line.start : 0;
}

static void walk_add(struct meter_walk *w, pid_t pid)
{
	if (w->n == w->room) {
		size_t room = w->room > 0 ? w->room * 2 : 64;
		struct metered *grown =
		        w->n <= MAX_PROCESSES_CAP ? reallocarray(w->v, room, sizeof(*grown)) : NULL;
		if (grown == NULL) {
			return;
		}
		w->v = grown;
		w->room = room;
	}
	w->v[w->n++] = (struct metered){ .pid = pid };
}

/* Adds the children of one thread. The kernel lists them as a text of any length: numbers, each
 * followed by a blank. */
static void add_children(struct meter_walk *w, pid_t pid, const char *tid)
{
	char path[64], text[4096];
	size_t kept = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, tid);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		char *p = text, *blank;
		text[kept + (size_t)n] = '\0';
		while ((blank = strchr(p, ' ')) != NULL) {
			walk_add(w, (pid_t)strtol(p, NULL, 10));
			p = blank + 1;
		}
		kept = strlen(p);
		memmove(text, p, kept);
	}
}

/* Adds the children of all threads of a process: the kernel lists children for each thread that
 * made them. */
static void add_children_of_all(struct meter_walk *w, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	const struct dirent *e;
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] != '.') {
			add_children(w, pid, e->d_name);
		}
	}
	if (dir != NULL) {
		(void)closedir(dir);
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct metered *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Returns the sum of all processes. A process that moved to another parent during the walk was
 * found twice; it counts once. */
static uint64_t walk_sum(struct meter_walk *w)
{
	uint64_t us = 0;

	if (w->n > 1) {
		qsort(w->v, w->n, sizeof(*w->v), by_pid);
	}
	for (size_t i = 0; i < w->n; i++) {
		us += i == 0 || w->v[i].pid != w->v[i - 1].pid ? w->v[i].us : 0;
	}
	return us;
}

/* A parent is read before its children. So the time of a child that ends in between is missing from
 * this sum, but is never counted twice. */
uint64_t meter_tree(pid_t init)
{
	struct meter_walk w = { 0 };
	char tid[16];

	walk_add(&w, init);
	for (size_t i = 0; i < w.n; i++) {
		struct stat_line line;
		pid_t pid = w.v[i].pid;
		if (!read_stat(pid, &line)) {
			continue;
		}
		w.v[i].us = line.own_us + line.waited_us;
		if (line.threads > 1) {
			add_children_of_all(&w, pid);
		} else {
			snprintf(tid, sizeof(tid), "%d", pid);
			add_children(&w, pid, tid);
		}
	}
	uint64_t us = walk_sum(&w);
	free(w.v);
	return us;
}

static void meter_set(struct meter *m, uint64_t us)
{
	m->us = us > m->us ? us : m->us;
}

/* Measures by the control group. Init is not in the group, so its own time is added. Returns false
 * if the group does not count CPU time. */
static bool by_group(struct meter *m, pid_t init, const struct cgroup *cg)
{
	struct stat_line line = { 0 };
	uint64_t us;

	if (!cgroup_cpu_us(cg, &us)) {
		return false;
	}
	(void)read_stat(init, &line);
	meter_set(m, us + line.own_us);
	return true;
}

void meter_look(struct meter *m, pid_t init, const struct cgroup *cg)
{
	if (by_group(m, init, cg)) {
		return;
	}
	uint64_t tree = meter_tree(init);
	for (int i = 1; i < WALKS && tree < m->tree; i++) {
		uint64_t again = meter_tree(init);
		tree = again > tree ? again : tree;
	}
	m->us += tree > m->tree ? tree - m->tree : 0;
	m->tree = tree;
}

void meter_last(struct meter *m, pid_t init, const struct cgroup *cg)
{
	struct stat_line line;

	if (!by_group(m, init, cg) && read_stat(init, &line)) {
		uint64_t whole = line.own_us + line.waited_us;
		m->us += whole > m->tree ? whole - m->tree : 0;
		m->tree = whole;
	}
}
