/* governed.h - the supervisor's end of govern.h.
 *
 * Each function accepts a run without a governor (r->govern is NULL) and does nothing then. */
#ifndef SANDBOX_GOVERNED_H
#define SANDBOX_GOVERNED_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "sandbox/supervise.h"

/* *ret is new; NULL if the request has no governor. */
int governed_new(const struct run_request *q, struct governed **ret, struct ssb_error *err);
void governed_free(struct governed *g);

/* What the loop waits for, and until when (clock_ms(); 0: never). */
struct pollfd governed_wants(const struct governed *g);
uint64_t governed_due(const struct governed *g);
/* True if the governor is behind: nothing more must be read that it has to be told. */
bool governed_full(const struct governed *g);

/* Reads what the governor sent, or notices that it is gone. */
void governed_hear(struct run *r);
/* At the end of a turn: sends what is to be sent, and does what is due. */
void governed_tick(struct run *r);

/* The stations of a run: the trace is open; the sandbox exists; the skill starts; init
 * reports that every process has stopped, or that one does not stop. */
void governed_traced(struct run *r);
void governed_placed(struct run *r);
void governed_started(struct run *r);
void governed_stands(struct run *r, uint32_t number);
void governed_restless(struct run *r);

bool governed_stopped(const struct run *r); /* paused, or about to be */
/* Why the governor ended the run; NULL: it did not. */
const char *governed_killed(const struct run *r);

/* After SIGKILL to all: thaws frozen processes, which could not die otherwise. */
void governed_let_die(struct run *r);
/* Before init is reaped: measures what all processes have used. */
void governed_last_look(struct run *r);
/* Sends the last messages: res->exit_status, and -1 as `end` if the run failed. */
void governed_ended(struct run *r, int end, const struct ssb_result *res);

#endif
