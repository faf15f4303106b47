/* egress.h - the egress of one run, seen from the supervisor: two processes,
 * a dialler with authority and a broker without, and what they report. */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include <sys/types.h>

#include "trace/trace.h"
#include "egress/ledger.h"
#include "egress/listen.h"
#include "egress/table.h"

struct egress {
	struct egress_table *table;
	struct listeners listeners; /* ours until the broker has them */
	int dialler;                /* pidfd; -1: not running */
	int broker;                 /* the same */
	struct ledger *ledger;      /* NULL: not running, or all is written down */
	int events;                 /* -1: not running */
	bool metered;               /* what is carried is told as it goes, not only at its end */
	uint64_t hear_at;           /* clock_ms() from which events are heard again; 0: now */
	/* Called for each connection that was opened; NULL: nobody wants to know. */
	void (*opened)(void *arg, const char *name);
	void *opened_arg;
	uint64_t bytes_out, bytes_in; /* of the whole run, once all is written down */
	int ready;                    /* -1: not running, or both are confined */
};

void egress_init(struct egress *e);

/* Both processes; the listeners are the broker's from then on. */
int egress_start(struct egress *e, const struct ssb_plan *plan, struct ssb_error *err);

/* Waits until both have given up what they must not have; nothing to wait for
 * where they were not started. */
int egress_ready(struct egress *e, struct ssb_error *err);

/* Takes what the broker has reported into the trace. Sets e->hear_at: until then
 * e->events is better not polled. */
void egress_hear(struct egress *e, struct trace *trace);

/* What was carried so far; behind by no more than 0.1 s where the run is
 * governed, else as of the connections that have ended. */
void egress_bytes(const struct egress *e, uint64_t *ret_out, uint64_t *ret_in);

/* The skill has ended by itself: lets the broker carry what it has said, for a second at
 * most. egress_stop() comes next. */
void egress_finish(struct egress *e, struct trace *trace);

/* Ends both and takes their last words. */
void egress_stop(struct egress *e, struct trace *trace);
void egress_done(struct egress *e);

#endif
