/* watchdog_priv.h - declarations that the files of the watchdog share. */
#ifndef SANDBOX_WATCHDOG_PRIV_H
#define SANDBOX_WATCHDOG_PRIV_H

#include <stddef.h>
#include <sys/stat.h>

#include "sandbox/watchdog.h"

#define WATCHDOG_STATUS_BYTES 16384 /* enough for the ids of about 2,000 groups */

/* ---- /proc (watchdog_proc.c) -------------------------------------------- */

/* Calls `visit` for every entry of the directory whose name is a number, in the kernel's order,
 * until `visit` returns false. Returns 0, or -1 with errno if the directory cannot be read. */
typedef bool watchdog_visit(struct watchdog *w, int dir_fd, int number, void *arg);
int watchdog_each(struct watchdog *w, int dir_fd, watchdog_visit *visit, void *arg);

/* Opens "/proc/TASK/NAME" without blocking. Returns a new fd, or -1 with errno. `task` is a process
 * or a thread: /proc lists only processes, but has a directory for both. */
int watchdog_open(const struct watchdog *w, pid_t task, const char *name, int flags);

/* Reads the first bytes of "/proc/TASK/NAME" as a string. Returns false with errno if nothing can
 * be read. */
bool watchdog_read(const struct watchdog *w, pid_t task, const char *name, char *out, size_t size);

/* Reads "status" up to and including the lines about memory. They come after the list of groups,
 * which can be of any length. Returns false if they are missing. */
bool watchdog_status(struct watchdog *w, pid_t task, char out[WATCHDOG_STATUS_BYTES]);

/* True if errno says that the process or file is gone. */
bool watchdog_gone(void);

/* Call it after a read failed, with errno unchanged: unless the process or file is gone, this check
 * has failed. */
void watchdog_lost(struct watchdog *w);

/* True if the process has more than one thread. Threads that have ended count as long as they are
 * listed. */
bool watchdog_threaded(struct watchdog *w, pid_t pid);

/* Returns the number after "KEY" at the start of a line; 0 if no line begins so. */
uint64_t watchdog_field(const char *text, const char *key);

/* ---- memfds (watchdog_fds.c) -------------------------------------------- */

void watchdog_round_begin(struct watchdog *w);
/* With `threads`, also examines fd tables that single threads have for themselves. */
void watchdog_round_process(struct watchdog *w, pid_t pid, bool threads);
void watchdog_round_end(struct watchdog *w);
uint64_t watchdog_memfd_bytes(const struct watchdog *w);
/* True if some fds could not be examined: watchdog_memfd_bytes() may be too small. */
bool watchdog_memfd_blind(const struct watchdog *w);
bool watchdog_knows_file(const struct watchdog *w, uint64_t dev, uint64_t ino);

#endif
