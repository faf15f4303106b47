/* run_watch.h - `run --watch`: a process of its own follows the record and
 * writes to standard error. However slowly somebody reads there, the run does
 * not wait for it. */
#ifndef CLI_RUN_WATCH_H
#define CLI_RUN_WATCH_H

#include <sys/types.h>

#include "sandbox/sandbox.h"

struct run_watch {
	pid_t pid; /* 0: none */
};

void run_watch_begin(struct run_watch *w, struct run_request *q);
/* Waits until all is written, but not for ever. */
void run_watch_end(struct run_watch *w);

#endif
