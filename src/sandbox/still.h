/* still.h - every process of the sandbox stands still, by signals.
 *
 * For where no control group can be frozen. Runs in init, without heap. One
 * SIGSTOP to all is not enough: a process that has not stopped yet can send
 * SIGCONT to another, and a timer can send it later. So init looks at every
 * thread, until two looks in a row have found all of them stopped, and goes on
 * looking while they are to stand. */
#ifndef SANDBOX_STILL_H
#define SANDBOX_STILL_H

#include <stdbool.h>
#include <sys/types.h>

#include "sandbox/watchdog.h"

/* Sends `sig` to every process of the sandbox: of the pid namespace of which
 * the caller is PID 1, else (namespaces false) to every descendant. */
void still_signal(struct watchdog *w, bool namespaces, int sig);

/* Are there threads that do not stand still? w->proc_fd is /proc. What cannot
 * be read counts as moving. */
bool still_moving(struct watchdog *w, bool namespaces);

#endif
