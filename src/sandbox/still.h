/* still.h - keeps every process of the sandbox stopped, by signals.
 *
 * Used if no control group can be frozen. Runs in init, without heap. One SIGSTOP to all processes
 * is not enough: a process that has not stopped yet can send SIGCONT to a stopped one, and a timer
 * can send SIGCONT later. So init checks every thread until two checks in a row have found all of
 * them stopped, and continues to check while they must stay stopped. */
#ifndef SANDBOX_STILL_H
#define SANDBOX_STILL_H

#include <stdbool.h>
#include <sys/types.h>

#include "sandbox/watchdog.h"

/* Sends `sig` to every other process of the pid namespace (the caller is PID 1) or, with
 * `namespaces` false, to every descendant. */
void still_signal(struct watchdog *w, bool namespaces, int sig);

/* Returns true if a thread of the sandbox is running. w->proc_fd must be /proc. A thread whose
 * state cannot be read counts as running. */
bool still_moving(struct watchdog *w, bool namespaces);

#endif
