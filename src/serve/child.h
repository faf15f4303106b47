/* child.h - a process that is forked from the server: runs (job.h) and errands (errand.h).
 *
 *   server ── fork ──► child: work()
 *     ▲ pipes            │  its output
 *     ▲ pidfd            │  its end; no bytes follow those that are in the pipes by then
 *
 * A child must not have what belongs to the server: its clients, its signals, its other fds. */
#ifndef SERVE_CHILD_H
#define SERVE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "os/loop.h"

#define CHILD_PIPES 2

struct child_wish {
	struct loop *loop;
	size_t n_pipes;
	/* Runs in the child, which ends when work() returns. `pipes` are the child's ends. work()
	 * must call child_settle() first; until then every signal is blocked. */
	void (*work)(void *arg, const int pipes[CHILD_PIPES]);
	/* Called in the server, from the loop, when bytes arrive from a pipe. */
	void (*data)(void *arg, size_t pipe, const char *data, size_t len);
	/* The last callback: the child is dead, and data() got every byte. It may call
	 * child_done(). */
	void (*ended)(void *arg, int status);
	void *arg;
};

struct child_pipe {
	struct child *child;
	int fd; /* -1: the pipe has ended */
	struct loop_watch *watch;
};

/* The address of a struct child must not change until child_done(). */
struct child {
	struct child_wish wish;
	pid_t pid; /* 0: not started */
	int pidfd;
	struct loop_watch *watch;
	struct child_pipe pipes[CHILD_PIPES];
};

/* On failure no process is left, and child_done() is not needed. */
int child_start(struct child *c, const struct child_wish *w, struct ssb_error *err);
void child_signal(const struct child *c, int sig);
/* Returns true if no more bytes will come from this pipe. */
bool child_pipe_ended(const struct child *c, size_t pipe);
/* Waits at most `ms` milliseconds for the child to end, and then kills it. -1: waits without a
 * limit. Calls ended(). */
void child_finish(struct child *c, int ms);
/* Stops watching the child, which may still be running, and closes all fds. */
void child_done(struct child *c);

/* ---- in the child ---- */

struct child_needs {
	int goes_with_server; /* the signal that it gets when the server is gone; 0: none */
	const int *held;      /* signals that stay blocked until something reads them */
	size_t n_held;
	const int *keep; /* fds that stay open, in any order; -1 is none */
	size_t n_keep;
};

/* Standard input and output become /dev/null. Standard error stays open, for messages about bugs.
 * If it returns -1, the child must end. */
int child_settle(const struct child_needs *needs);

#endif
