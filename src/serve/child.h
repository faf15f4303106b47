/* child.h - a process that is forked from the server, and must not have what is the
 * server's: its clients, its signals, its fds. */
#ifndef SERVE_CHILD_H
#define SERVE_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t server;
	int goes_with_it; /* the signal that it gets when the server is gone; 0: none */
	const int *held;  /* signals that stay blocked: they wait for whoever reads them */
	size_t n_held;
	const int *keep; /* fds that stay, in any order; -1 is none */
	size_t n_keep;
};

/* As clone_fork(); in the child every signal is blocked until child_settle(). */
pid_t child_fork(int *ret_pidfd);
/* Standard error stays: it is where a process says what nobody expected. Standard input
 * and output are /dev/null. -1: it must not go on. */
int child_settle(const struct child *c);

#endif
