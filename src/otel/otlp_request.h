/* otlp_request.h - writes the parts of a request that do not depend on the exported items: its
 * frame, and the frame of a span or log record. */
#ifndef OTEL_OTLP_REQUEST_H
#define OTEL_OTLP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_read.h"
#include "otel/otel_config.h"
#include "otel/otlp.h"

/* Both functions begin a request with its resource and scope. The caller then writes the log
 * records or spans, and calls otlp_request_end(). */
void otlp_logs_begin(struct otlp *w, const struct otel_config *c);
void otlp_spans_begin(struct otlp *w, const struct otel_config *c);
void otlp_request_end(struct otlp *w);

enum otlp_severity { OTLP_DEBUG, OTLP_INFO, OTLP_WARN, OTLP_ERROR };

/* All borrowed. */
struct otlp_log {
	uint64_t nano;
	enum otlp_severity severity;
	const uint8_t *trace_id;
	const uint8_t *span_id;
	const char *time; /* the text of the time in the line */
	const char *name;
};

/* Begins a log record. The caller then writes its body and attributes, and calls
 * w->format->close(). */
void otlp_log_begin(struct otlp *w, const struct otlp_log *log, const struct otel_config *c);

struct otlp_span {
	const char *name;
	const uint8_t *trace_id;
	const uint8_t *id;
	const uint8_t *parent; /* NULL: none */
	bool remote;           /* the parent span belongs to another process */
	uint64_t from_nano;
	uint64_t to_nano;
};

/* Begins a span. The caller then writes its attributes, its events, the number of events that were
 * left out and its status, and calls w->format->close(). */
void otlp_span_begin(struct otlp *w, const struct otlp_span *s, const struct otel_config *c);
void otlp_span_dropped(struct otlp *w, uint64_t n);
void otlp_span_status(struct otlp *w, bool good, const char *message);

/* Writes a JSON value as an attribute of the same type. An empty text, null and an
 * object write nothing. */
void otlp_attr_node(struct otlp *w, const char *key, const struct json_doc *doc,
                    const struct json_node *n);

#endif
