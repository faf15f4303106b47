/* run_watch.h - shows what a skill does while it runs. */
#ifndef CLI_RUN_WATCH_H
#define CLI_RUN_WATCH_H

#include "cli/cli.h"
#include "sandbox/sandbox.h"

struct run_watcher {
	pid_t pid;                /* pid of the process that prints; 0: none */
	bool progress;            /* one line, with the seconds (progress.h) */
	bool routine;             /* --watch also shows what is routine */
	atomic_bool *full_screen; /* see struct run_request; NULL with --watch */
};

/* Prepares the request so that a process prints: with --watch every event, else the first denials
 * if standard error is a terminal. */
void run_watch_begin(struct run_watcher *w, const struct request *r, struct run_request *q);
/* For struct ssb_watch: starts the process that prints this record. */
void run_watch_start(void *watcher, int record);
/* Must be called when the run has ended. */
void run_watch_end(struct run_watcher *w);
/* Opens the record a second time. Returns an fd, or -1. */
int run_watch_reopen(int record);

#endif
