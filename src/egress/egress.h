/* egress.h - starts and ends the egress of one run, from the supervisor. The egress consists of two
 * processes: the dialler, which may connect, and the broker, which may not. Their reports become
 * events of the trace. */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include <sys/types.h>

#include "trace/trace.h"
#include "egress/ledger.h"
#include "egress/listen.h"
#include "egress/table.h"

struct egress {
	struct egress_table *table;
	struct listeners listeners; /* owned by the supervisor until egress_start() */
	int dialler;                /* pidfd; -1: not running */
	int broker;                 /* pidfd; -1: not running */
	struct ledger *ledger;      /* NULL: not running, or already closed */
	int events;                 /* the socket to the broker; -1: not running */
	/* No host is granted. Then the two processes are started by the skill's first lookup of a
	 * name, which they refuse: so the record has the name. */
	bool on_demand;
	bool metered;     /* the broker also reports bytes while connections are open */
	uint64_t hear_at; /* clock_ms() before which e->events should not be read again; 0: now */
	/* Called for each connection that was opened; NULL: not called. */
	void (*opened)(void *arg, const char *name);
	void *opened_arg;
	uint64_t bytes_out, bytes_in; /* totals of the whole run; set when the ledger is closed */
	int ready; /* pipe for confine_wait(); -1: not running, or both are confined */
};

void egress_init(struct egress *e);

/* Starts both processes, and closes the listeners in the calling process, so that only the broker
 * has them. The caller must call egress_done() even after a failure. */
int egress_start(struct egress *e, const struct ssb_plan *plan, struct ssb_error *err);

/* Returns the `n`th socket that must be polled for the first lookup, or -1 if there is none. When
 * it can be read, egress_wake() must be called. */
int egress_sleeper(const struct egress *e, size_t n);
/* Starts both processes for the first lookup, which waits in the socket. If that fails, nobody
 * answers lookups, and the trace says so. */
void egress_wake(struct egress *e, struct trace *trace);

/* Waits until both processes are confined. The skill must not start before this has succeeded.
 * Returns 0 at once if the processes were not started. */
int egress_ready(struct egress *e, struct ssb_error *err);

/* Writes the broker's reports into the trace, and sets e->hear_at: the caller should not poll
 * e->events before that time. */
void egress_hear(struct egress *e, struct trace *trace);

/* Gets the number of bytes carried so far. If the run is metered, the numbers are at most 0.1 s
 * old; otherwise they include only connections that have ended. */
void egress_bytes(const struct egress *e, uint64_t *ret_out, uint64_t *ret_in);

/* Must be called when the skill has ended by itself. The broker then has at most one second to
 * carry the bytes that the skill has sent. The caller must call egress_stop() afterwards. */
void egress_finish(struct egress *e, struct trace *trace);

/* Ends both processes and writes their last reports into the trace. */
void egress_stop(struct egress *e, struct trace *trace);
void egress_done(struct egress *e);

#endif
