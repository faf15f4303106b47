/* otlp_logs.c - each decision as a log record, in requests of some size. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "otel/otlp_fields.h"
#include "otel/otlp_record.h"
#include "base/stamp.h"

void otlp_logs_begin(struct otlp *w, const struct otel_config *c)
{
	const struct otlp_format *f = w->format;

	f->begin(w);
	f->list(w, REQUEST_LOGS);
	f->item(w, REQUEST_LOGS);
	otlp_write_resource(w, c);
	f->list(w, SCOPE_LOGS);
	f->item(w, SCOPE_LOGS);
	otlp_write_scope(w);
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
	const char *severity = SEVERITIES[log->severity].text;
	int64_t wall = 0;

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

static enum otlp_severity severity_of(const struct line *l)
{
	const char *status = line_text(l, "status");

	if (strcmp(l->kind, "skill_failed") == 0) {
		return OTLP_ERROR;
	}
	if (otlp_is_violation(l) || strcmp(l->kind, "resource_limit_hit") == 0 ||
	    (status != NULL && strcmp(status, "denied") == 0)) {
		return OTLP_WARN;
	}
	return status != NULL && strcmp(status, "absent") == 0 ? OTLP_DEBUG : OTLP_INFO;
}

static void write_body(struct otlp *w, const struct line *l)
{
	const struct json_node *message = json_member(&l->doc, l->top, "message");
	char text[96];

	w->format->open(w, LOG_BODY);
	if (json_is(message, JSON_STRING)) {
		otlp_text(w, ANY_STRING, message->str, message->len);
	} else {
		snprintf(text, sizeof(text), "%" PRId64 " more like record %" PRId64,
		         json_integer(line_get(l, "count"), 0),
		         json_integer(line_get(l, "repeat_of"), 0));
		otlp_text(w, ANY_STRING, text, strlen(text));
	}
	w->format->close(w);
}

static const uint8_t *span_of(const struct otlp_run *run, int64_t mono)
{
	if (mono < run->to_us[PHASE_SETUP] || !run->has[PHASE_RUN]) {
		return run->phase_id[PHASE_SETUP];
	}
	if (mono <= run->to_us[PHASE_RUN] || !run->has[PHASE_TEARDOWN]) {
		return run->phase_id[PHASE_RUN];
	}
	return run->phase_id[PHASE_TEARDOWN];
}

void otlp_logs_add(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                   const struct line *l)
{
	int64_t mono = otlp_mono(l);
	const struct otlp_log log = {
		.nano = otlp_nano(run, mono),
		.severity = severity_of(l),
		.trace_id = run->trace_id,
		.span_id = span_of(run, mono),
		.time = l->time,
		.name = otlp_event_name(l),
	};

	otlp_log_begin(w, &log, c);
	write_body(w, l);
	otlp_attrs(w, LOG_ATTRIBUTES);
	otlp_attr_str(w, "sandbox.run.id", run->id);
	otlp_attr_str(w, "sandbox.skill.name", run->skill);
	otlp_event_attrs(w, l);
	otlp_attrs_end(w);
	w->format->close(w);
}
