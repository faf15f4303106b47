/* governed.h - the supervisor's end of govern.h.
 *
 * All of it takes a run without a governor (r->govern NULL), and does nothing
 * then. */
#ifndef SANDBOX_GOVERNED_H
#define SANDBOX_GOVERNED_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "sandbox/supervise.h"

/* For a run with a governor; *ret is new, and NULL where there is none. */
int governed_new(const struct run_request *q, struct governed **ret, struct ssb_error *err);
void governed_free(struct governed *g);

/* What the loop waits for, and until when (clock_ms(); 0: nothing is due). */
struct pollfd governed_wants(const struct governed *g);
uint64_t governed_due(const struct governed *g);
/* The governor is behind: no more is to be heard that it has to be told. */
bool governed_full(const struct governed *g);

/* The governor spoke, or is gone. */
void governed_hear(struct run *r);
/* The end of a turn: what has to be told, and what is due. */
void governed_tick(struct run *r);

/* On the way: the trace is open; the sandbox is there; the skill starts; init
 * says that every process stands still, or that one will not. */
void governed_traced(struct run *r);
void governed_placed(struct run *r);
void governed_started(struct run *r);
void governed_stands(struct run *r, uint32_t number);
void governed_restless(struct run *r);

bool governed_stopped(const struct run *r); /* paused, or about to be */
/* Its governor has ended it; why, or NULL. */
const char *governed_killed(const struct run *r);

/* Everything was told to die: also what is frozen can. */
void governed_let_die(struct run *r);
/* Before init is reaped: what everything has used. */
void governed_last_look(struct run *r);
/* The last words; res->exit_status, and -1 for `end` where the run failed. */
void governed_ended(struct run *r, int end, const struct ssb_result *res);

#endif
