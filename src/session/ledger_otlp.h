/* ledger_otlp.h - the ledger of a session as OpenTelemetry data: a log record for each
 * line, and a span for a session that is over, in one trace whose ids are derived from the
 * session's id. */
#ifndef SESSION_LEDGER_OTLP_H
#define SESSION_LEDGER_OTLP_H

#include "otel/otel_config.h"
#include "trace/reader.h"
#include "session/session.h"

/* True: the line becomes a log record. Lines about the export itself do not, because that
 * would never end, nor do signatures. */
bool ledger_is_told(const struct line *l);
/* True: the span needs the line: the start, the end, and each event in between. */
bool ledger_is_of_span(const struct line *l);
/* True: the line is the end of the session. */
bool ledger_is_end(const struct line *l);

/* Writes the whole request from the lines of an item (NOTIFY_OTEL). w->out says whether
 * that failed. Unreadable lines are left out. */
void ledger_write_logs(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);
void ledger_write_span(struct otlp *w, const struct outbox_item *item, const struct otel_config *c);

#endif
