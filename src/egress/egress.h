/* egress.h - the egress of one run, as the supervisor sees it: it starts two processes, a dialler
 * with authority and a broker without, and takes their reports into the trace. */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include <sys/types.h>

#include "trace/trace.h"
#include "egress/ledger.h"
#include "egress/listen.h"
#include "egress/table.h"

struct egress {
	struct egress_table *table;
	struct listeners listeners; /* the supervisor's until egress_start() */
	int dialler;                /* pidfd; -1: not running */
	int broker;                 /* pidfd; -1: not running */
	struct ledger *ledger;      /* NULL: not running, or already closed */
	int events;                 /* socket to the broker; -1: not running */
	bool metered;               /* the broker also reports bytes while connections are open */
	uint64_t hear_at;           /* clock_ms() at which events are read again; 0: now */
	/* Called for each connection that was opened; NULL: not called. */
	void (*opened)(void *arg, const char *name);
	void *opened_arg;
	uint64_t bytes_out, bytes_in; /* of the whole run; set when the ledger is closed */
	int ready; /* the pipe of confine_wait(); -1: not running, or both are confined */
};

void egress_init(struct egress *e);

/* Starts both processes. Closes the listeners here: from then on only the broker has them. Call
 * egress_done() also after a failure. */
int egress_start(struct egress *e, const struct ssb_plan *plan, struct ssb_error *err);

/* Waits until both processes are confined. The skill must not start before. Returns 0 at once if
 * they were not started. */
int egress_ready(struct egress *e, struct ssb_error *err);

/* Writes what the broker has reported into the trace, and sets e->hear_at: the caller should not
 * poll e->events before that time. */
void egress_hear(struct egress *e, struct trace *trace);

/* Bytes carried so far. If the run is metered they are at most 0.1 s old; otherwise they count
 * connections that have ended. */
void egress_bytes(const struct egress *e, uint64_t *ret_out, uint64_t *ret_in);

/* Call it when the skill has ended by itself: the broker carries what the skill has sent, for one
 * second at most. egress_stop() must follow. */
void egress_finish(struct egress *e, struct trace *trace);

/* Ends both processes and writes their last reports into the trace. */
void egress_stop(struct egress *e, struct trace *trace);
void egress_done(struct egress *e);

#endif
