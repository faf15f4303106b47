/* ledger.h - from what the broker reports to what the trace says.
 *
 * A connection has two events: one when it is open, before its first byte, and
 * one at its end, with the same number. The open ones are held here, so that a
 * broker that dies takes none of them along.
 *
 * At the end there is one event for each destination (rule, name, port and address) that
 * connections were made to, with how many they were and what they carried. These have room
 * of their own in the record: also where there was none for the connections, it says where
 * the bytes went. LEDGER_TOTALS destinations are kept, and one more stands for all others.
 *
 * Everything else is a fact that can repeat itself without end. The first time
 * it is an event at once; further times are counted, and stand in one more
 * event at the end of the run, with the first and the last time. Of each kind
 * LEDGER_FACTS different ones are kept; what is beyond is counted all the same.
 *
 * The broker reads hostile bytes and is not believed: what it says is text, and
 * no amount of it makes this grow. */
#ifndef EGRESS_LEDGER_H
#define EGRESS_LEDGER_H

#include "trace/trace.h"
#include "egress/egress_event.h"

#define LEDGER_FACTS  512
#define LEDGER_TOTALS 512

struct ledger;

/* New, or NULL: no memory. Borrows the plan. */
struct ledger *ledger_new(const struct ssb_plan *plan);
void ledger_free(struct ledger *l);

void ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace);

/* What was carried so far: as of the connections' ends, or as the broker says. */
void ledger_bytes(const struct ledger *l, uint64_t *ret_out, uint64_t *ret_in);

/* The broker is gone: connections that it has not ended are `broker_lost`, what
 * was counted is written down. */
void ledger_close(struct ledger *l, struct trace *trace);

#endif
