/* ledger.h - turns what the broker reports into events of the trace.
 *
 * A connection has two events with the same number: one when it is open, before its first byte,
 * and one at its end. The open ones are held here, so that none is lost if the broker dies.
 *
 * At the end there is one event for each destination (rule, name, port and address) with the
 * number of its connections and the bytes they carried. These events have room of their own in
 * the record: even if the record had no room for the connections, it says where the bytes went.
 * LEDGER_TOTALS destinations are kept, and one more entry stands for all others.
 *
 * Everything else is a fact that can repeat without end. The first time it is an event at once.
 * Further times are counted, and one more event at the end of the run gives the count with the
 * first and the last time. LEDGER_FACTS different facts of each kind are kept; facts beyond that
 * are only counted.
 *
 * The broker reads hostile bytes and is not believed: its reports are text, and no number of them
 * makes the ledger grow beyond these limits. */
#ifndef EGRESS_LEDGER_H
#define EGRESS_LEDGER_H

#include "trace/trace.h"
#include "egress/egress_event.h"

#define LEDGER_FACTS  512
#define LEDGER_TOTALS 512

struct ledger;

/* Returns a new ledger, or NULL: no memory. Borrows the plan. */
struct ledger *ledger_new(const struct ssb_plan *plan);
void ledger_free(struct ledger *l);

/* Takes one report: writes an event into the trace, or counts it. */
void ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace);

/* Bytes carried so far: those of ended connections, or what the broker last said if that is
 * more. */
void ledger_bytes(const struct ledger *l, uint64_t *ret_out, uint64_t *ret_in);

/* Call it when the broker is gone: connections that it has not ended end as `broker_lost`, and
 * what was counted is written into the trace. */
void ledger_close(struct ledger *l, struct trace *trace);

#endif
