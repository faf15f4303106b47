/* otlp_request.c - writes the parts of a request that do not depend on the exported items. */
#include "otel/otlp_request.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/own.h"
#include "base/stamp.h"
#include "otel/otlp_limits.h"

/* Returns OpenTelemetry's name of an architecture. */
static const char *arch_name(const char *machine)
{
	return strcmp(machine, "x86_64") == 0    ? "amd64"
	       : strcmp(machine, "aarch64") == 0 ? "arm64"
	                                         : machine;
}

static bool occurs_before(const struct otlp_pairs *p, size_t n)
{
	return ARRAY_HAS(e, p->v, n, strcmp(e->name, p->v[n].name) == 0);
}

/* Writes the attributes of the resource: those that the owner set, and then those that only this
 * program sets. Each key is written once. */
static void write_resource(struct otlp *w, const struct otel_config *c)
{
	struct utsname host = { 0 };

	(void)uname(&host);
	const struct {
		const char *key;
		const char *value;
		bool fixed;
	} ours[] = {
		{ "service.name", c->service, true },
		{ "service.version", SSB_VERSION, false },
		{ "host.arch", arch_name(host.machine), false },
		{ "os.type", "linux", false },
		{ "os.version", host.release, false },
	};
	bool taken[ARRAY_LEN(ours)] = { false };
	w->format->open(w, OF_RESOURCE);
	otlp_attrs(w, RESOURCE_ATTRIBUTES);
	for (size_t i = 0; i < c->resource.n; i++) {
		const struct otlp_pair *p = &c->resource.v[i];
		bool again = occurs_before(&c->resource, i);
		for (size_t k = 0; k < ARRAY_LEN(ours); k++) {
			bool same = strcmp(p->name, ours[k].key) == 0;
			again = again || (same && ours[k].fixed);
			taken[k] = taken[k] || (same && !ours[k].fixed);
		}
		if (!again) {
			otlp_attr_str(w, p->name, p->value);
		}
	}
	for (size_t k = 0; k < ARRAY_LEN(ours); k++) {
		if (!taken[k]) {
			otlp_attr_str(w, ours[k].key, ours[k].value);
		}
	}
	otlp_attrs_end(w);
	w->format->close(w);
}

static void write_scope(struct otlp *w)
{
	w->format->open(w, OF_SCOPE);
	otlp_text(w, SCOPE_NAME, "skillsandbox", strlen("skillsandbox"));
	otlp_text(w, SCOPE_VERSION, SSB_VERSION, strlen(SSB_VERSION));
	w->format->close(w);
}

void otlp_logs_begin(struct otlp *w, const struct otel_config *c)
{
	const struct otlp_format *f = w->format;

	f->begin(w);
	f->list(w, REQUEST_LOGS);
	f->item(w, REQUEST_LOGS);
	write_resource(w, c);
	f->list(w, SCOPE_LOGS);
	f->item(w, SCOPE_LOGS);
	write_scope(w);
	f->list(w, LOG_RECORDS);
}

void otlp_request_end(struct otlp *w)
{
	const struct otlp_format *f = w->format;

	f->list_end(w);
	f->close(w);
	f->list_end(w);
	f->close(w);
	f->list_end(w);
	f->end(w);
}

void otlp_log_begin(struct otlp *w, const struct otlp_log *log, const struct otel_config *c)
{
	static const struct {
		uint32_t number;
		const char *text;
	} SEVERITIES[] = {
		[OTLP_DEBUG] = { SEVERITY_DEBUG, "DEBUG" },
		[OTLP_INFO] = { SEVERITY_INFO, "INFO" },
		[OTLP_WARN] = { SEVERITY_WARN, "WARN" },
		[OTLP_ERROR] = { SEVERITY_ERROR, "ERROR" },
	};
	const struct otlp_format *f = w->format;
	int64_t wall = 0;

	assert((unsigned)log->severity < ARRAY_LEN(SEVERITIES));
	const char *severity = SEVERITIES[log->severity].text;
	f->item(w, LOG_RECORDS);
	f->fixed64(w, LOG_TIME, log->nano);
	f->uint32(w, LOG_SEVERITY, SEVERITIES[log->severity].number);
	otlp_text(w, LOG_SEVERITY_TEXT, severity, strlen(severity));
	if (c->flags != 0) {
		f->fixed32(w, LOG_FLAGS, c->flags);
	}
	f->id(w, LOG_TRACE_ID, log->trace_id, OTLP_TRACE_ID);
	f->id(w, LOG_SPAN_ID, log->span_id, OTLP_SPAN_ID);
	if (stamp_parse(log->time, &wall)) {
		f->fixed64(w, LOG_OBSERVED, (uint64_t)wall * 1000);
	}
	otlp_text(w, LOG_EVENT_NAME, log->name, strlen(log->name));
}

void otlp_spans_begin(struct otlp *w, const struct otel_config *c)
{
	const struct otlp_format *f = w->format;

	f->begin(w);
	f->list(w, REQUEST_SPANS);
	f->item(w, REQUEST_SPANS);
	write_resource(w, c);
	f->list(w, SCOPE_SPANS);
	f->item(w, SCOPE_SPANS);
	write_scope(w);
	f->list(w, SPANS);
}

void otlp_span_begin(struct otlp *w, const struct otlp_span *s, const struct otel_config *c)
{
	const struct otlp_format *f = w->format;

	f->item(w, SPANS);
	f->id(w, SPAN_TRACE_ID, s->trace_id, OTLP_TRACE_ID);
	f->id(w, SPAN_ID, s->id, OTLP_SPAN_ID);
	if (c->state != NULL) {
		otlp_text(w, SPAN_TRACE_STATE, c->state, strlen(c->state));
	}
	if (s->parent != NULL) {
		f->id(w, SPAN_PARENT_ID, s->parent, OTLP_SPAN_ID);
	}
	otlp_text(w, SPAN_NAME, s->name, strlen(s->name));
	f->uint32(w, SPAN_KIND, KIND_INTERNAL);
	f->fixed64(w, SPAN_START, s->from_nano);
	f->fixed64(w, SPAN_END, s->to_nano);
	f->fixed32(w, SPAN_FLAGS, c->flags | FLAG_HAS_REMOTE | (s->remote ? FLAG_REMOTE : 0U));
}

void otlp_span_dropped(struct otlp *w, uint64_t n)
{
	if (n > 0) {
		w->format->uint32(w, SPAN_EVENTS_DROPPED,
		                  n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
	}
}

void otlp_span_status(struct otlp *w, bool good, const char *message)
{
	w->format->open(w, SPAN_STATUS);
	if (!good) {
		otlp_text(w, STATUS_MESSAGE, message, strlen(message));
	}
	w->format->uint32(w, STATUS_CODE, good ? CODE_OK : CODE_ERROR);
	w->format->close(w);
}

static void put_array(struct otlp *w, const char *key, const struct json_doc *doc,
                      const struct json_node *array)
{
	size_t n = 0;

	otlp_attr_array(w, key);
	for (const struct json_node *e = json_first(doc, array); e != NULL && n < OTLP_MAX_ARRAY;
	     e = json_next(doc, e)) {
		if (e->type == JSON_STRING || e->type == JSON_NUMBER) {
			otlp_element(w, e->str, e->len);
			n++;
		}
	}
	otlp_attr_array_end(w);
}

void otlp_attr_node(struct otlp *w, const char *key, const struct json_doc *doc,
                    const struct json_node *n)
{
	if (json_is(n, JSON_STRING) && n->len > 0) {
		otlp_attr_text(w, key, n->str, n->len);
	} else if (json_is(n, JSON_NUMBER) && json_integer(n, INT64_MIN) != INT64_MIN) {
		otlp_attr_int(w, key, json_integer(n, 0));
	} else if (json_is(n, JSON_NUMBER) && isfinite(strtod(n->str, NULL))) {
		otlp_attr_real(w, key, strtod(n->str, NULL));
	} else if (json_is(n, JSON_TRUE) || json_is(n, JSON_FALSE)) {
		otlp_attr_bool(w, key, json_is(n, JSON_TRUE));
	} else if (json_is(n, JSON_ARRAY)) {
		put_array(w, key, doc, n);
	}
}
