/* ledger.h - turns the broker's reports into events of the trace.
 *
 * A connection has two events with the same number: one when it is opened, before its first byte,
 * and one when it ends. The ledger remembers the open connections, so that each gets its second
 * event even if the broker dies.
 *
 * At the end there is one event for each destination (rule, name, port and address) with the number
 * of its connections and the bytes that they carried. These events have reserved room in the
 * record. So the record always says where the bytes went, even if it had no room for the
 * connections. LEDGER_TOTALS destinations are kept, and one more entry counts all others.
 *
 * All other reports are facts that can repeat without end. The first occurrence becomes an event at
 * once. Further occurrences are counted, and one more event at the end of the run contains the
 * count with the first and the last time. LEDGER_FACTS different facts of each kind are kept; facts
 * beyond that are only counted.
 *
 * The broker reads hostile bytes, so its reports are not trusted: they are treated as text, and no
 * number of them can make the ledger grow beyond these limits. */
#ifndef EGRESS_LEDGER_H
#define EGRESS_LEDGER_H

#include "trace/trace.h"
#include "egress/egress_event.h"

#define LEDGER_FACTS  512
#define LEDGER_TOTALS 512

struct ledger;

/* Returns a new ledger, or NULL if there is no memory. Borrows the plan. */
struct ledger *ledger_new(const struct ssb_plan *plan);
void ledger_free(struct ledger *l);

/* Handles one report: writes an event into the trace, or counts it. */
void ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace);

/* Gets the number of bytes carried so far: those of ended connections, or the number that the
 * broker reported last if that is larger. */
void ledger_bytes(const struct ledger *l, uint64_t *ret_out, uint64_t *ret_in);

/* Must be called when the broker has ended. Open connections get an end event with the reason
 * `broker_lost`, and all counts are written into the trace. */
void ledger_close(struct ledger *l, struct trace *trace);

#endif
