/* watchdog_priv.h - what the files of the watchdog share. */
#ifndef SANDBOX_WATCHDOG_PRIV_H
#define SANDBOX_WATCHDOG_PRIV_H

#include <stddef.h>
#include <sys/stat.h>

#include "sandbox/watchdog.h"

#define WATCHDOG_STATUS_BYTES 16384 /* with the numbers of some 2,000 groups */

/* ---- /proc (watchdog_proc.c) -------------------------------------------- */

/* Calls `visit` for every entry of the directory whose name is a number, in
 * the kernel's order, until it returns false. -1 if it cannot be read. */
typedef bool watchdog_visit(struct watchdog *w, int dir_fd, int number, void *arg);
int watchdog_each(struct watchdog *w, int dir_fd, watchdog_visit *visit, void *arg);

/* Opens "/proc/TASK/NAME"; never blocks. The task is a process or a thread:
 * /proc lists the former only, but shows the latter to whoever asks. */
int watchdog_open(const struct watchdog *w, pid_t task, const char *name, int flags);

/* The first bytes of "/proc/TASK/NAME" as a string; false, with errno, if there are none. */
bool watchdog_read(const struct watchdog *w, pid_t task, const char *name, char *out, size_t size);

/* The same of "status", as far as the lines on memory, which stand behind a list of groups of
 * any length. */
bool watchdog_status(struct watchdog *w, pid_t task, char out[WATCHDOG_STATUS_BYTES]);

/* Whether errno says that the object of a look is gone. */
bool watchdog_gone(void);

/* A look failed: unless its object is gone, this check has failed. */
void watchdog_lost(struct watchdog *w);

/* Whether the process has more than one thread, dead ones that are still
 * listed included. */
bool watchdog_threaded(struct watchdog *w, pid_t pid);

/* The number behind "KEY" at the start of a line; 0 if absent. */
uint64_t watchdog_field(const char *text, const char *key);

/* ---- memfds (watchdog_fds.c) -------------------------------------------- */

void watchdog_round_begin(struct watchdog *w);
/* threads: also the tables that threads have for themselves. */
void watchdog_round_process(struct watchdog *w, pid_t pid, bool threads);
void watchdog_round_end(struct watchdog *w);
uint64_t watchdog_memfd_bytes(const struct watchdog *w);
/* Some fds could not be looked at: the figure may be too small. */
bool watchdog_memfd_blind(const struct watchdog *w);
bool watchdog_knows_file(const struct watchdog *w, uint64_t dev, uint64_t ino);

#endif
