/* otlp.h - writes messages of the OpenTelemetry protocol (OTLP 1), field by field.
 *
 * A message has the same fields in both encodings, protobuf (otlp_proto.c) and JSON
 * (otlp.c). Each encoding is a table of functions. A field is declared once, with its
 * number and its JSON name. */
#ifndef OTEL_OTLP_H
#define OTEL_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct otlp_field {
	uint32_t number;
	const char *name;
};

#define OTLP_DEPTH 16

struct otlp {
	struct buf *out; /* borrowed; writing can fail only because this buffer is full */
	const struct otlp_format *format;
	struct json json;         /* JSON */
	size_t begin[OTLP_DEPTH]; /* protobuf: where the open messages begin */
	unsigned depth;
	struct otlp_field attributes; /* the list to which the otlp_attr_*() functions add */
};

/* A collector's report about the items that it rejected. */
struct otlp_partial {
	int64_t rejected;
	char why[160]; /* the server's text, cut */
};

struct otlp_format {
	const char *content_type;
	void (*begin)(struct otlp *w); /* begins the whole message */
	void (*end)(struct otlp *w);
	void (*open)(struct otlp *w, struct otlp_field f); /* opens a nested message */
	void (*close)(struct otlp *w);
	void (*list)(struct otlp *w, struct otlp_field f); /* begins a repeated field */
	void (*item)(
	        struct otlp *w,
	        struct otlp_field f); /* opens a message in the repeated field; close() ends it */
	void (*list_end)(struct otlp *w);
	void (*text)(struct otlp *w, struct otlp_field f, const char *s, size_t len); /* UTF-8 */
	void (*id)(struct otlp *w, struct otlp_field f, const uint8_t *id, size_t len);
	void (*fixed64)(struct otlp *w, struct otlp_field f, uint64_t v);
	void (*fixed32)(struct otlp *w, struct otlp_field f, uint32_t v);
	void (*int64)(struct otlp *w, struct otlp_field f, int64_t v);
	void (*uint32)(struct otlp *w, struct otlp_field f, uint32_t v); /* also for enumerations */
	void (*boolean)(struct otlp *w, struct otlp_field f, bool v);
	/* Writes a number with six decimal places, because no number of a record has more. */
	void (*real)(struct otlp *w, struct otlp_field f, double v);
	/* Reads the partial success from an answer. Returns false if the answer has none. */
	bool (*partial)(const char *body, size_t len, struct otlp_partial *ret);
};

extern const struct otlp_format OTLP_PROTO;
extern const struct otlp_format OTLP_JSON;

void otlp_init(struct otlp *w, struct buf *out, const struct otlp_format *format);

/* Writes a text of any bytes. Control characters and bytes that are not UTF-8 become \xNN, because
 * not every reader of telemetry handles them safely. A longer text is cut at OTLP_MAX_TEXT
 * bytes. */
void otlp_text(struct otlp *w, struct otlp_field f, const char *s, size_t len);

/* Begins and ends a list of attributes. The caller must use each key only once. */
void otlp_attrs(struct otlp *w, struct otlp_field f);
void otlp_attrs_end(struct otlp *w);
void otlp_attr_text(struct otlp *w, const char *key, const char *s, size_t len);
void otlp_attr_str(struct otlp *w, const char *key, const char *s); /* NULL: writes nothing */
void otlp_attr_int(struct otlp *w, const char *key, int64_t v);
void otlp_attr_bool(struct otlp *w, const char *key, bool v);
void otlp_attr_real(struct otlp *w, const char *key, double v);
/* Begin and end an array of texts. Between them, the caller calls otlp_element() once for each
 * text. */
void otlp_attr_array(struct otlp *w, const char *key);
void otlp_element(struct otlp *w, const char *s, size_t len);
void otlp_attr_array_end(struct otlp *w);

/* ---- the fields that are written, by message ------------------------------- */

/* ExportTraceServiceRequest, ExportLogsServiceRequest */
static const struct otlp_field REQUEST_SPANS = { 1, "resourceSpans" };
static const struct otlp_field REQUEST_LOGS = { 1, "resourceLogs" };

/* ResourceSpans, ResourceLogs */
static const struct otlp_field OF_RESOURCE = { 1, "resource" };
static const struct otlp_field SCOPE_SPANS = { 2, "scopeSpans" };
static const struct otlp_field SCOPE_LOGS = { 2, "scopeLogs" };

/* Resource */
static const struct otlp_field RESOURCE_ATTRIBUTES = { 1, "attributes" };

/* ScopeSpans, ScopeLogs */
static const struct otlp_field OF_SCOPE = { 1, "scope" };
static const struct otlp_field SPANS = { 2, "spans" };
static const struct otlp_field LOG_RECORDS = { 2, "logRecords" };

/* InstrumentationScope */
static const struct otlp_field SCOPE_NAME = { 1, "name" };
static const struct otlp_field SCOPE_VERSION = { 2, "version" };

/* Span */
static const struct otlp_field SPAN_TRACE_ID = { 1, "traceId" };
static const struct otlp_field SPAN_ID = { 2, "spanId" };
static const struct otlp_field SPAN_TRACE_STATE = { 3, "traceState" };
static const struct otlp_field SPAN_PARENT_ID = { 4, "parentSpanId" };
static const struct otlp_field SPAN_NAME = { 5, "name" };
static const struct otlp_field SPAN_KIND = { 6, "kind" };
static const struct otlp_field SPAN_START = { 7, "startTimeUnixNano" };
static const struct otlp_field SPAN_END = { 8, "endTimeUnixNano" };
static const struct otlp_field SPAN_ATTRIBUTES = { 9, "attributes" };
static const struct otlp_field SPAN_EVENTS = { 11, "events" };
static const struct otlp_field SPAN_EVENTS_DROPPED = { 12, "droppedEventsCount" };
static const struct otlp_field SPAN_STATUS = { 15, "status" };
static const struct otlp_field SPAN_FLAGS = { 16, "flags" };

/* Span.Event */
static const struct otlp_field EVENT_TIME = { 1, "timeUnixNano" };
static const struct otlp_field EVENT_NAME = { 2, "name" };
static const struct otlp_field EVENT_ATTRIBUTES = { 3, "attributes" };

/* Status */
static const struct otlp_field STATUS_MESSAGE = { 2, "message" };
static const struct otlp_field STATUS_CODE = { 3, "code" };

/* LogRecord */
static const struct otlp_field LOG_TIME = { 1, "timeUnixNano" };
static const struct otlp_field LOG_SEVERITY = { 2, "severityNumber" };
static const struct otlp_field LOG_SEVERITY_TEXT = { 3, "severityText" };
static const struct otlp_field LOG_BODY = { 5, "body" };
static const struct otlp_field LOG_ATTRIBUTES = { 6, "attributes" };
static const struct otlp_field LOG_FLAGS = { 8, "flags" };
static const struct otlp_field LOG_TRACE_ID = { 9, "traceId" };
static const struct otlp_field LOG_SPAN_ID = { 10, "spanId" };
static const struct otlp_field LOG_OBSERVED = { 11, "observedTimeUnixNano" };
static const struct otlp_field LOG_EVENT_NAME = { 12, "eventName" };

/* KeyValue */
static const struct otlp_field PAIR_KEY = { 1, "key" };
static const struct otlp_field PAIR_VALUE = { 2, "value" };

/* AnyValue, ArrayValue */
static const struct otlp_field ANY_STRING = { 1, "stringValue" };
static const struct otlp_field ANY_BOOL = { 2, "boolValue" };
static const struct otlp_field ANY_INT = { 3, "intValue" };
static const struct otlp_field ANY_DOUBLE = { 4, "doubleValue" };
static const struct otlp_field ANY_ARRAY = { 5, "arrayValue" };
static const struct otlp_field ARRAY_VALUES = { 1, "values" };

enum { KIND_INTERNAL = 1 };
enum { CODE_OK = 1, CODE_ERROR = 2 };
enum { SEVERITY_DEBUG = 5, SEVERITY_INFO = 9, SEVERITY_WARN = 13, SEVERITY_ERROR = 17 };
enum {
	FLAG_HAS_REMOTE = 0x100,
	FLAG_REMOTE = 0x200
}; /* these flags show whether the parent span belongs to another process */

#endif
