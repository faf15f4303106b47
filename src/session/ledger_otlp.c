/* ledger_otlp.c - writes the lines of a ledger as OpenTelemetry logs and spans. */
#include "session/ledger_otlp.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/sha256.h"
#include "otel/otlp_limits.h"
#include "otel/otlp_record.h"
#include "otel/otlp_request.h"

#define NAME_SIZE 96

static const char *top_text(const struct line *l, const char *member)
{
	return json_string(json_member(&l->doc, l->top, member), NULL);
}

static enum otlp_severity judge_severity(const struct line *l)
{
	switch (l->kind) {
	case EV_SESSION_KILLED:
	case EV_SESSION_EXPIRED:
		return OTLP_ERROR;
	case EV_SESSION_PAUSED:
	case EV_BUDGET_ALERT:
	case EV_VIOLATION:
	case EV_ACTION_BLOCKED:
		return OTLP_WARN;
	case EV_NOTIFICATION:
		return session_outbox_from(top_text(l, "status")) == OUTBOX_GIVEN_UP ? OTLP_WARN
		                                                                     : OTLP_INFO;
	default:
		return OTLP_INFO;
	}
}

/* Returns true if the line reports the usage of a run with violations. */
static bool has_violations(const struct line *l)
{
	return l->kind == EV_USAGE &&
	       json_is(json_member(&l->doc, l->top, "violations"), JSON_OBJECT);
}

bool ledger_is_told(const struct line *l)
{
	return l->kind != EV_SIGNATURE &&
	       !(l->kind == EV_NOTIFICATION &&
	         session_notify_from(top_text(l, "type")) == NOTIFY_OTEL);
}

bool ledger_is_of_span(const struct line *l)
{
	switch (l->kind) {
	case EV_SESSION_CREATED:
	case EV_SESSION_RESUMED:
	case EV_SESSION_PAUSED:
	case EV_BUDGET_ALERT:
	case EV_VIOLATION:
		return true;
	default:
		return ledger_is_end(l) || has_violations(l);
	}
}

bool ledger_is_end(const struct line *l)
{
	return l->kind == EV_SESSION_KILLED || l->kind == EV_SESSION_EXPIRED ||
	       l->kind == EV_SESSION_COMPLETED;
}

/* Makes the name of an event in the common form: "session.killed", "session.violation". */
static const char *event_name(const char *kind, char out[NAME_SIZE])
{
	static const char OWN[] = "session_";

	if (strncmp(kind, OWN, sizeof(OWN) - 1) == 0) {
		kind += sizeof(OWN) - 1;
	}
	snprintf(out, NAME_SIZE, "session.%.80s", kind);
	return out;
}

/* Makes an id. It is the same for every try, and any program that knows the session can compute it.
 * It is never all zeros, because that would mean "no id". */
static void make_id(uint8_t *ret, size_t size, const char *what, const char *session)
{
	uint8_t hash[SHA256_BYTES];
	char text[64 + SESSION_ID];

	snprintf(text, sizeof(text), "skillsandbox session %s %s", what, session);
	sha256(text, strlen(text), hash);
	memcpy(ret, hash, size);
	ret[size - 1] |= 1;
}

struct ids {
	uint8_t trace[OTLP_TRACE_ID];
	uint8_t span[OTLP_SPAN_ID];
};

static void make_ids(struct ids *ret, const char *session)
{
	make_id(ret->trace, sizeof(ret->trace), "trace", session);
	make_id(ret->span, sizeof(ret->span), "span", session);
}

static uint64_t nano_of(const struct outbox_item *item, int64_t mono_us)
{
	return ((uint64_t)item->begun_us + (uint64_t)mono_us) * 1000;
}

/* ---- attributes ---------------------------------------------------------- */

/* Returns the attribute for this member of a ledger line. NULL: the member is not exported. */
static const char *attribute_of(const char *member)
{
	static const struct {
		const char *member;
		const char *attribute;
	} NAMES[] = {
		{ "seq", "session.ledger.seq" },
		{ "kind", "session.event.kind" },
		{ "session_id", "session.id" },
		{ "agent_id", "session.agent" },
		{ "parent", "session.parent" },
		{ "run_id", "sandbox.run.id" },
		{ "time", NULL },
		{ "mono", NULL },
		{ "prev", NULL },
		{ "hash", NULL },
		{ "snapshot", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		if (strcmp(NAMES[i].member, member) == 0) {
			return NAMES[i].attribute;
		}
	}
	return member;
}

/* Writes {"pii": 3} as the array ["pii=3"]. Agents and skills choose these names, so the names must
 * not become keys. */
static void put_counts(struct otlp *w, const char *key, const struct line *l,
                       const struct json_node *object)
{
	char text[160];
	size_t n = 0;

	otlp_attr_array(w, key);
	for (const struct json_node *e = json_first(&l->doc, object);
	     e != NULL && n < OTLP_MAX_ARRAY; e = json_next(&l->doc, e)) {
		if (json_is(e, JSON_NUMBER)) {
			snprintf(text, sizeof(text), "%.100s=%.32s", e->key, e->str);
			otlp_element(w, text, strlen(text));
			n++;
		}
	}
	otlp_attr_array_end(w);
}

/* Writes the snapshot of the session after the line. */
static void put_snapshot(struct otlp *w, const struct line *l)
{
	const struct json_node *snapshot = json_member(&l->doc, l->top, "snapshot");
	char key[NAME_SIZE];

	if (!json_is(snapshot, JSON_OBJECT)) {
		return;
	}
	JSON_EACH (n, &l->doc, snapshot) {
		snprintf(key, sizeof(key), "session.%.60s",
		         strcmp(n->key, "spent_usd") == 0 ? "cost_usd" : n->key);
		otlp_attr_node(w, key, &l->doc, n);
	}
}

/* Writes the attributes of a line. If `event` is true, also writes the line's number and kind. */
static void put_attributes(struct otlp *w, const struct line *l, bool event)
{
	JSON_EACH (n, &l->doc, l->top) {
		const char *key = attribute_of(n->key);
		if (!event && (strcmp(n->key, "seq") == 0 || strcmp(n->key, "kind") == 0)) {
			continue;
		}
		if (key != NULL && json_is(n, JSON_OBJECT) && n->n > 0) {
			put_counts(w, key, l, n);
		} else if (key != NULL) {
			otlp_attr_node(w, key, &l->doc, n);
		}
	}
	put_snapshot(w, l);
}

/* ---- lines --------------------------------------------------------------- */

typedef void each_fn(void *arg, const struct line *l);

static void each_line(const char *lines, each_fn *fn, void *arg)
{
	AUTO(line_done) struct line l = { 0 };
	const char *why = NULL;

	while (*lines != '\0') {
		size_t len = strcspn(lines, "\n");
		if (line_parse(&l, lines, len, &why) == 0) {
			fn(arg, &l);
		}
		lines += len + (lines[len] == '\n' ? 1 : 0);
	}
}

struct writing {
	struct otlp *w;
	const struct outbox_item *item;
	const struct otel_config *c;
	struct ids ids;
	/* the fields below are used only for a span */
	int64_t end_us;
	bool over;  /* the end of the session was found */
	bool ended; /* the end of the session was written; later lines are skipped */
	bool good;
	char reason[SESSION_REASON];
	size_t events;
};

static void put_body(struct otlp *w, const struct line *l)
{
	const char *reason = top_text(l, "reason");
	const char *text = reason != NULL && reason[0] != '\0' ? reason : l->kind_name;

	w->format->open(w, LOG_BODY);
	otlp_text(w, ANY_STRING, text, strlen(text));
	w->format->close(w);
}

static void put_log(void *arg, const struct line *l)
{
	const struct writing *x = arg;
	char name[NAME_SIZE];
	const struct otlp_log log = {
		.nano = nano_of(x->item, otlp_mono(l)),
		.severity = judge_severity(l),
		.trace_id = x->ids.trace,
		.span_id = x->ids.span,
		.time = l->time,
		.name = event_name(l->kind_name, name),
	};

	if (!ledger_is_told(l)) {
		return;
	}
	otlp_log_begin(x->w, &log, x->c);
	put_body(x->w, l);
	otlp_attrs(x->w, LOG_ATTRIBUTES);
	put_attributes(x->w, l, true);
	otlp_attrs_end(x->w);
	x->w->format->close(x->w);
}

void ledger_write_logs(struct otlp *w, const struct outbox_item *item, const struct otel_config *c)
{
	struct writing x = { .w = w, .item = item, .c = c };

	make_ids(&x.ids, item->session);
	otlp_logs_begin(w, c);
	each_line(item->body, put_log, &x);
	otlp_request_end(w);
}

/* ---- the span ------------------------------------------------------------ */

static bool is_begin(const struct line *l)
{
	return l->kind == EV_SESSION_CREATED;
}

static void find_end(void *arg, const struct line *l)
{
	struct writing *x = arg;

	if (x->over) {
		return; /* lines after the end, such as a bill, are not part of the span */
	}
	x->end_us = otlp_mono(l);
	x->over = ledger_is_end(l);
	if (x->over) {
		const char *reason = json_string(json_member(&l->doc, l->top, "reason"), NULL);
		x->good = l->kind == EV_SESSION_COMPLETED;
		snprintf(x->reason, sizeof(x->reason), "%s", reason != NULL ? reason : "");
	}
}

/* Writes the facts of a session: its policy from the first line, its result from the last line. */
static void put_facts(void *arg, const struct line *l)
{
	static const char *const FIRST[] = { "parent", "policy_version", "policy_digest",
		                             "budget_limit" };
	struct writing *x = arg;
	char name[NAME_SIZE];

	if (x->ended) {
		return;
	}
	for (size_t i = 0; is_begin(l) && i < ARRAY_LEN(FIRST); i++) {
		otlp_attr_node(x->w, attribute_of(FIRST[i]), &l->doc,
		               json_member(&l->doc, l->top, FIRST[i]));
	}
	if (ledger_is_end(l)) {
		x->ended = true;
		put_attributes(x->w, l, false);
		if (!x->good) {
			otlp_attr_str(x->w, "error.type", event_name(l->kind_name, name));
		}
	}
}

static void put_event(void *arg, const struct line *l)
{
	struct writing *x = arg;
	char name[NAME_SIZE];
	const struct otlp_format *f = x->w->format;

	if (x->ended || !ledger_is_of_span(l) || is_begin(l) || l->kind == EV_SESSION_COMPLETED) {
		return;
	}
	x->ended = ledger_is_end(l);
	(void)event_name(has_violations(l) ? "violation" : l->kind_name, name);
	x->events++;
	f->item(x->w, SPAN_EVENTS);
	f->fixed64(x->w, EVENT_TIME, nano_of(x->item, otlp_mono(l)));
	otlp_text(x->w, EVENT_NAME, name, strlen(name));
	otlp_attrs(x->w, EVENT_ATTRIBUTES);
	put_attributes(x->w, l, true);
	otlp_attrs_end(x->w);
	f->close(x->w);
}

void ledger_write_span(struct otlp *w, const struct outbox_item *item, const struct otel_config *c)
{
	struct writing x = { .w = w, .item = item, .c = c };

	make_ids(&x.ids, item->session);
	each_line(item->body, find_end, &x);
	const struct otlp_span span = {
		.name = "session",
		.trace_id = x.ids.trace,
		.id = x.ids.span,
		.from_nano = nano_of(item, 0),
		.to_nano = nano_of(item, x.end_us),
	};
	otlp_spans_begin(w, c);
	otlp_span_begin(w, &span, c);
	otlp_attrs(w, SPAN_ATTRIBUTES);
	each_line(item->body, put_facts, &x);
	otlp_attrs_end(w);
	x.ended = false;
	w->format->list(w, SPAN_EVENTS);
	each_line(item->body, put_event, &x);
	w->format->list_end(w);
	otlp_span_dropped(w, item->dropped);
	otlp_span_status(w, x.good, x.reason);
	w->format->close(w);
	otlp_request_end(w);
}
