/* ledger_otlp.h - writes the ledger of a session as OpenTelemetry data: a log record for each
 * line, and a span for a session that is over. The records and the span are in one trace. Its
 * ids are derived from the session's id. */
#ifndef SESSION_LEDGER_OTLP_H
#define SESSION_LEDGER_OTLP_H

#include "otel/otel_config.h"
#include "trace/reader.h"
#include "session/session.h"

/* Returns true if the line becomes a log record. Signatures do not become log records. Neither do
 * lines about the export itself, because each export would then cause another one. */
bool ledger_is_told(const struct line *l);
/* Returns true if the span contains the line: the start, the end, and each event in between. */
bool ledger_is_of_span(const struct line *l);
/* Returns true if the line is the end of the session. */
bool ledger_is_end(const struct line *l);

/* Writes the whole request from the lines of an item (NOTIFY_OTEL). Omits unreadable lines. On
 * failure, w->out is failed. */
void ledger_write_logs(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);
void ledger_write_span(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);

#endif
