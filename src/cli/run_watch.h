/* run_watch.h - `run --watch`: a separate process follows the record and writes to standard error,
 * so that the run never waits for a slow reader. */
#ifndef CLI_RUN_WATCH_H
#define CLI_RUN_WATCH_H

#include <sys/types.h>

#include "sandbox/sandbox.h"

struct run_watch {
	pid_t pid; /* of the watching process; 0: none */
};

void run_watch_begin(struct run_watch *w, struct run_request *q);
/* Waits until the process has printed everything, for at most 5 s. */
void run_watch_end(struct run_watch *w);

#endif
