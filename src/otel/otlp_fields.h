/* otlp_fields.h - the fields of OTLP 1 that we write, by message. */
#ifndef OTEL_OTLP_FIELDS_H
#define OTEL_OTLP_FIELDS_H

#include "otel/otlp.h"

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
enum { FLAG_HAS_REMOTE = 0x100, FLAG_REMOTE = 0x200 }; /* of a span's parent */

#endif
