/* still.c - signals every process of the sandbox, and checks whether all have stopped. */
#include "sandbox/still.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "sandbox/watchdog_priv.h"

/* The number of generations of descendants that are searched. A deeper process always counts as
 * running. Each generation takes 9 KiB of the stack. */
#define MAX_DEPTH 400

/* True if SIGSTOP is pending for the thread. A thread in vfork(), for example, cannot receive the
 * signal now. It counts as stopped, because it will stop before it runs any more code of the
 * program. */
static bool stop_pends(const struct watchdog *w, pid_t task)
{
	static const char *const SETS[] = { "SigPnd:", "ShdPnd:" };
	char text[4096];

	if (!watchdog_read(w, task, "status", text, sizeof(text))) {
		return watchdog_gone();
	}
	for (size_t i = 0; i < ARRAY_LEN(SETS); i++) {
		const char *at = strstr(text, SETS[i]);
		if (at != NULL &&
		    (strtoull(at + strlen(SETS[i]), NULL, 16) >> (SIGSTOP - 1) & 1) != 0) {
			return true;
		}
	}
	return false;
}

/* Returns true if the thread is running, by the state letter after the program's name in
 * /proc/TASK/stat. The name itself may contain any character. */
static bool task_moves(const struct watchdog *w, pid_t task)
{
	char text[512];

	if (!watchdog_read(w, task, "stat", text, sizeof(text))) {
		return !watchdog_gone();
	}
	const char *p = strrchr(text, ')');
	char state = p != NULL && strlen(p) > 2 ? p[2] : 'R';
	if (strchr("TtZXx", state) != NULL) {
		return false;
	}
	return state != 'D' || !stop_pends(w, task);
}

static bool visit_task(struct watchdog *w, int dir_fd, int task, void *arg)
{
	bool *moving = arg;

	(void)dir_fd;
	*moving = *moving || task_moves(w, task);
	return !*moving;
}

static bool process_moves(struct watchdog *w, pid_t pid)
{
	bool moving = false;

	if (!watchdog_threaded(w, pid)) {
		return task_moves(w, pid);
	}
	auto_fd tasks = watchdog_open(w, pid, "task", O_DIRECTORY);
	if (tasks < 0) {
		return !watchdog_gone();
	}
	return watchdog_each(w, tasks, visit_task, &moving) != 0 || moving;
}

static bool visit_process(struct watchdog *w, int dir_fd, int pid, void *arg)
{
	bool *moving = arg;

	(void)dir_fd;
	*moving = *moving || (pid != w->self && process_moves(w, pid));
	return !*moving;
}

/* ---- without a pid namespace: the tree beneath us ------------------------- */

struct tree {
	int sig; /* the signal to send; 0: only check whether a process is running */
	bool moving;
	int depth;
};

static void walk_children(struct watchdog *w, pid_t pid, pid_t task, struct tree *t);

static void walk_process(struct watchdog *w, pid_t pid, struct tree *t)
{
	if (t->sig != 0) {
		(void)kill(pid, t->sig);
	} else {
		t->moving = t->moving || process_moves(w, pid);
	}
	walk_children(w, pid, 0, t);
}

struct of_process {
	pid_t pid;
	struct tree *tree;
};

static bool visit_children(struct watchdog *w, int dir_fd, int task, void *arg)
{
	struct of_process *of = arg;

	(void)dir_fd;
	walk_children(w, of->pid, task, of->tree);
	return true;
}

/* Like watchdog_open(). If the open fails although the process exists (because of too few fds,
 * say), the process counts as running. */
static int open_of(const struct watchdog *w, pid_t pid, const char *name, int flags, struct tree *t)
{
	int fd = watchdog_open(w, pid, name, flags);

	t->moving = t->moving || (fd < 0 && !watchdog_gone());
	return fd;
}

/* Walks the children of the thread `task`. If `task` is 0, walks the children of all threads of the
 * process. */
static void walk_children(struct watchdog *w, pid_t pid, pid_t task, struct tree *t)
{
	char name[40], text[256];
	size_t kept = 0;
	ssize_t n;

	if (task == 0) {
		struct of_process of = { pid, t };
		auto_fd tasks = open_of(w, pid, "task", O_DIRECTORY, t);
		if (tasks >= 0) {
			(void)watchdog_each(w, tasks, visit_children, &of);
		}
		return;
	}
	if (t->depth >= MAX_DEPTH) {
		t->moving = true;
		return;
	}
	snprintf(name, sizeof(name), "task/%d/children", task);
	auto_fd fd = open_of(w, pid, name, 0, t);
	t->depth++;
	while (fd >= 0 && (n = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		char *p = text, *blank;
		text[kept + (size_t)n] = '\0';
		while ((blank = strchr(p, ' ')) != NULL) {
			walk_process(w, (pid_t)strtol(p, NULL, 10), t);
			p = blank + 1;
		}
		kept = strlen(p);
		memmove(text, p, kept);
	}
	t->depth--;
}

/* ---- with and without a pid namespace -------------------------------------- */

void still_signal(struct watchdog *w, bool namespaces, int sig)
{
	struct tree t = { .sig = sig };

	if (namespaces) {
		(void)kill(-1, sig); /* to all processes except init, in one step of the kernel */
	} else {
		walk_children(w, w->self, 0, &t);
	}
}

bool still_moving(struct watchdog *w, bool namespaces)
{
	struct tree t = { .sig = 0 };
	bool moving = false;

	if (!namespaces) {
		walk_children(w, w->self, 0, &t);
		return t.moving;
	}
	return lseek(w->proc_fd, 0, SEEK_SET) != 0 ||
	       watchdog_each(w, w->proc_fd, visit_process, &moving) != 0 || moving;
}
