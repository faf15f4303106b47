/* governed.h - how the supervisor takes part in the messages of govern.h.
 *
 * If a run has no governor (r->govern or `g` is NULL), each function does nothing. */
#ifndef SANDBOX_GOVERNED_H
#define SANDBOX_GOVERNED_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "sandbox/supervise.h"

/* *ret is new; NULL if the request has no governor. */
int governed_new(const struct run_request *q, struct governed **ret, struct ssb_error *err);
void governed_free(struct governed *g);

/* The fd and events that the loop must poll for, and the time at which it must call governed_tick()
 * at the latest (compare with clock_ms(); 0: never). */
struct pollfd governed_wants(const struct governed *g);
uint64_t governed_due(const struct governed *g);
/* True if names of connections wait to be sent to the governor. The loop must then read no egress
 * events, which could add more names. */
bool governed_full(const struct governed *g);

/* Reads what the governor sent, or notices that it is gone. */
void governed_hear(struct run *r);
/* Call it at the end of each turn of the loop: sends the waiting messages and does the work that is
 * due. */
void governed_tick(struct run *r);

/* The next four functions must be called when the run reaches a state: the trace is open; the
 * sandbox exists; every process has stopped in a pause; init reports that a process does not
 * stop. */
void governed_traced(struct run *r);
void governed_placed(struct run *r);
void governed_paused(struct run *r);
void governed_restless(struct run *r);

/* Returns the reason (borrowed) if the governor ended the run, else NULL. */
const char *governed_killed(const struct run *r);

/* Call it before init is reaped: measures the CPU time of all processes for the last time. */
void governed_last_look(struct run *r);
/* Sends the waiting messages and GOVERN_ENDED with res->exit_status and `end` (enum ssb_end; -1:
 * the run failed). Waits up to 2 s for a slow governor. */
void governed_ended(struct run *r, int end, const struct ssb_result *res);

#endif
