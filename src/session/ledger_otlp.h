/* ledger_otlp.h - the ledger of a session in the words of OpenTelemetry: a log
 * record for each line, and a span for a session that is over, in one trace whose
 * ids follow from the session's. */
#ifndef SESSION_LEDGER_OTLP_H
#define SESSION_LEDGER_OTLP_H

#include "otel/otel_config.h"
#include "trace/reader.h"
#include "session/session.h"

/* A line that becomes a log record: not those on the export itself, which would be
 * without end, and no signature. */
bool ledger_is_told(const struct line *l);
/* A line that the span is made of: the begin, the end, and what becomes an event of
 * it in between. */
bool ledger_is_of_span(const struct line *l);
/* The end itself. */
bool ledger_is_end(const struct line *l);

/* The whole request, from the lines of an item (NOTIFY_OTEL); how it ends is in
 * w->out. Lines that cannot be read are left out. */
void ledger_write_logs(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);
void ledger_write_span(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);

#endif
