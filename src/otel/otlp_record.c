/* otlp_record.c - writes the run as a span, with one span for each of its phases. */
#include "otel/otlp_record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/name.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/stamp.h"
#include "otel/otlp_limits.h"
#include "otel/otlp_request.h"

void otlp_each_line(int fd, otlp_line_fn *fn, void *arg)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	reader_init(&in, fd, 0);
	while (reader_next(&in, &text, &len) == READER_LINE &&
	       line_parse(&l, text, len, &why) == 0) {
		fn(arg, &l);
	}
}

int64_t otlp_mono(const struct line *l)
{
	int64_t v = json_integer(json_member(&l->doc, l->top, "mono"), 0);

	return v > 0 ? v : 0;
}

uint64_t otlp_nano(const struct otlp_run *run, int64_t mono_us)
{
	return ((uint64_t)run->begin_us + (uint64_t)mono_us) * 1000;
}

/* Derives an id from the run's id, so that every attempt to send the run has the same ids. The id
 * is never all zeros, which would mean "no id". */
static void make_id(uint8_t ret[OTLP_SPAN_ID], const char *run, const char *what)
{
	uint8_t hash[SHA256_BYTES];
	char text[96];

	snprintf(text, sizeof(text), "skillsandbox span %s %s", run, what);
	sha256(text, strlen(text), hash);
	memcpy(ret, hash, OTLP_SPAN_ID);
	ret[OTLP_SPAN_ID - 1] |= 1;
}

/* Makes the trace id from the run's id, which is a UUID and has the same size. */
static bool parse_trace_id(uint8_t ret[OTLP_TRACE_ID], const char *run)
{
	char hex[2 * OTLP_TRACE_ID + 1];
	size_t n = 0;

	for (const char *p = run; *p != '\0' && n < sizeof(hex) - 1; p++) {
		if (*p != '-') {
			hex[n++] = *p;
		}
	}
	return n == sizeof(hex) - 1 && hex_decode(hex, n, ret, OTLP_TRACE_ID) == 0;
}

struct record_facts {
	struct otlp_run run;
	bool begun;
	int64_t layers_us; /* -1: the line was not read yet */
	int64_t exit_us;
};

static void take_first(struct record_facts *f, const struct line *l)
{
	const char *id = line_text(l, "run_id");

	f->begun = l->seq == 0 && l->kind == EV_RUN && id != NULL &&
	           runs_id_valid(id, strlen(id)) && stamp_parse(l->time, &f->run.begin_us);
	if (f->begun) {
		snprintf(f->run.id, sizeof(f->run.id), "%s", id);
		const char *skill = line_text(l, "skill_name");
		snprintf(f->run.skill, sizeof(f->run.skill), "%s", skill != NULL ? skill : "");
	}
}

static void take_line(void *arg, const struct line *l)
{
	struct record_facts *f = arg;
	int64_t at = otlp_mono(l);

	if (!f->begun) {
		take_first(f, l);
		return;
	}
	f->run.end_us = at > f->run.end_us ? at : f->run.end_us;
	f->run.denied += otlp_is_violation(l) ? 1 : 0;
	if (l->kind == EV_LAYERS && f->exit_us < 0) {
		f->layers_us = at;
	} else if ((l->kind == EV_EXIT_CODE || l->kind == EV_SKILL_FAILED) && f->exit_us < 0) {
		f->exit_us = at;
	} else if (l->kind == EV_END) {
		const char *end = line_text(l, "end");
		f->run.complete = end != NULL;
		f->run.exit_code = json_integer(line_get(l, "exit_code"), -1);
		f->run.exited = end != NULL && name_to_end(end) == SSB_END_EXITED;
		snprintf(f->run.end, sizeof(f->run.end), "%s", end != NULL ? end : "");
	}
}

static void set_phase(struct otlp_run *r, enum otlp_phase p, int64_t from, int64_t to)
{
	r->has[p] = true;
	r->from_us[p] = from;
	r->to_us[p] = to > from ? to : from;
}

/* Sets the phases. If the sandbox could not be built, there is no run phase. If the record was cut
 * off, there is no tear-down phase. */
static void set_phases(struct record_facts *f)
{
	struct otlp_run *r = &f->run;
	int64_t exited = f->exit_us >= 0 ? f->exit_us : r->end_us;

	set_phase(r, PHASE_SETUP, 0, f->layers_us >= 0 ? f->layers_us : exited);
	if (f->layers_us >= 0) {
		set_phase(r, PHASE_RUN, f->layers_us, exited);
	}
	if (f->exit_us >= 0) {
		set_phase(r, PHASE_TEARDOWN, f->exit_us, r->end_us);
	}
}

int otlp_run_read(struct otlp_run *ret, int fd, const struct otel_config *c)
{
	static const char *const PHASE[PHASES] = { "setup", "run", "teardown" };
	struct record_facts f = { .layers_us = -1, .exit_us = -1, .run.exit_code = -1 };

	otlp_each_line(fd, take_line, &f);
	if (!f.begun) {
		return -1;
	}
	set_phases(&f);
	if (c->has_parent) {
		memcpy(f.run.trace_id, c->trace_id, sizeof(f.run.trace_id));
	} else if (!parse_trace_id(f.run.trace_id, f.run.id)) {
		return -1;
	}
	make_id(f.run.span_id, f.run.id, "");
	for (int i = 0; i < PHASES; i++) {
		make_id(f.run.phase_id[i], f.run.id, PHASE[i]);
	}
	*ret = f.run;
	return 0;
}

/* ---- spans ---------------------------------------------------------------- */

/* Attributes of the run, from the lines of its record that are not events. */
static const struct run_row {
	enum event_kind kind;
	const char *object; /* the object in the line that has `member`; NULL: the line itself */
	const char *member;
	const char *attribute;
} ROWS[] = {
	{ EV_RUN, NULL, "run_id", "sandbox.run.id" },
	{ EV_RUN, NULL, "run_id", "sandbox.trace_id" },
	{ EV_RUN, NULL, "skill_name", "sandbox.skill.name" },
	{ EV_RUN, NULL, "skill_version", "sandbox.skill.version" },
	{ EV_RUN, NULL, "manifest", "sandbox.manifest.path" },
	{ EV_RUN, NULL, "manifest_digest", "sandbox.manifest.digest" },
	{ EV_RUN, NULL, "plan_digest", "sandbox.plan.digest" },
	{ EV_RUN, NULL, "audit", "sandbox.audit.level" },
	{ EV_RUN, NULL, "user", "process.user.id" },
	{ EV_RUN, NULL, "parent_run", "sandbox.parent_run.id" },
	{ EV_RUN, NULL, "session", "session.id" },
	{ EV_FILES, NULL, "files_digest", "sandbox.files.digest" },
	{ EV_FILES, NULL, "count", "sandbox.files.count" },
	{ EV_END, NULL, "exit_code", "sandbox.exit_code" },
	{ EV_END, NULL, "exit_code", "process.exit.code" },
	{ EV_END, NULL, "end", "sandbox.end" },
	{ EV_END, NULL, "signal", "sandbox.signal" },
	{ EV_END, "counters", "violations", "sandbox.violations.count" },
	{ EV_END, "counters", "events", "sandbox.events.count" },
	{ EV_END, "counters", "dropped", "sandbox.events.dropped" },
	{ EV_END, "counters", "repeats", "sandbox.events.repeated" },
	{ EV_END, "counters", "unreadable", "sandbox.events.unreadable" },
	{ EV_END, "counters", "stdout_bytes", "sandbox.stdout.bytes" },
	{ EV_END, "counters", "stderr_bytes", "sandbox.stderr.bytes" },
	{ EV_END, "summary", "all_prevented", "sandbox.violations.all_prevented" },
	{ EV_END, "summary", "total_enforcements", "sandbox.classification.total_enforcements" },
	{ EV_END, "summary", "max_severity", "sandbox.classification.max_severity" },
	{ EV_END, "summary", "classes", "sandbox.classification.classes" },
};

/* Writes the state of each layer, as in "sandbox.layer.net": "on". */
static void put_layer_attrs(struct otlp *w, const struct line *l)
{
	const struct json_node *layers = json_member(&l->doc, l->top, "layers");
	char key[96];

	if (!json_is(layers, JSON_OBJECT)) {
		return;
	}
	JSON_EACH (n, &l->doc, layers) {
		snprintf(key, sizeof(key), "sandbox.layer.%.40s", n->key);
		otlp_attr_node(w, key, &l->doc, json_member(&l->doc, n, "state"));
	}
}

/* Writes the count of each class, as in "sandbox.classification.<class>.count": 3. */
static void put_class_attrs(struct otlp *w, const struct line *l)
{
	const struct json_node *summary = json_member(&l->doc, l->top, "summary");
	const struct json_node *list = json_member(&l->doc, summary, "classifications");
	char key[128];

	if (!json_is(list, JSON_ARRAY)) {
		return;
	}
	JSON_EACH (n, &l->doc, list) {
		const char *name = json_string(json_member(&l->doc, n, "class"), NULL);
		if (name != NULL) {
			snprintf(key, sizeof(key), "sandbox.classification.%.60s.count", name);
			otlp_attr_node(w, key, &l->doc, json_member(&l->doc, n, "count"));
		}
	}
}

static void put_line_attrs(void *arg, const struct line *l)
{
	struct otlp *w = arg;

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		if (ROWS[i].kind != l->kind) {
			continue;
		}
		const struct json_node *from =
		        ROWS[i].object == NULL ? l->top
		                               : json_member(&l->doc, l->top, ROWS[i].object);
		otlp_attr_node(w, ROWS[i].attribute, &l->doc,
		               json_member(&l->doc, from, ROWS[i].member));
	}
	if (l->kind == EV_LAYERS) {
		put_layer_attrs(w, l);
	} else if (l->kind == EV_END) {
		put_class_attrs(w, l);
		otlp_attr_int(w, "sandbox.duration_ms",
		              json_integer(json_member(&l->doc, l->top, "duration_us"), 0) / 1000);
	}
}

struct span_denials {
	struct otlp *w;
	const struct otlp_run *run;
	size_t n;
};

static void put_denial(void *arg, const struct line *l)
{
	struct span_denials *d = arg;
	const char *name = otlp_event_name(l);

	if (!otlp_is_violation(l) || d->n == OTLP_MAX_EVENTS) {
		return;
	}
	d->n++;
	d->w->format->item(d->w, SPAN_EVENTS);
	d->w->format->fixed64(d->w, EVENT_TIME, otlp_nano(d->run, otlp_mono(l)));
	otlp_text(d->w, EVENT_NAME, name, strlen(name));
	otlp_attrs(d->w, EVENT_ATTRIBUTES);
	otlp_attr_node(d->w, "sandbox.event.message", &l->doc,
	               json_member(&l->doc, l->top, "message"));
	otlp_event_attrs(d->w, l);
	otlp_attrs_end(d->w);
	d->w->format->close(d->w);
}

static bool has_succeeded(const struct otlp_run *run)
{
	return run->complete && run->exited && run->exit_code == 0;
}

static void write_run_status(struct otlp *w, const struct otlp_run *run)
{
	char text[96];

	snprintf(text, sizeof(text), "%s, exit status %" PRId64, run->end, run->exit_code);
	otlp_span_status(w, has_succeeded(run), run->complete ? text : "the record has no end");
}

static void write_run_span(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                           int fd)
{
	struct span_denials denials = { w, run, 0 };
	const struct otlp_span s = {
		.name = "skill_execution",
		.trace_id = run->trace_id,
		.id = run->span_id,
		.parent = c->has_parent ? c->parent_id : NULL,
		.remote = c->has_parent,
		.from_nano = otlp_nano(run, 0),
		.to_nano = otlp_nano(run, run->end_us),
	};

	otlp_span_begin(w, &s, c);
	otlp_attrs(w, SPAN_ATTRIBUTES);
	otlp_each_line(fd, put_line_attrs, w);
	if (!has_succeeded(run)) {
		otlp_attr_str(w, "error.type",
		              !run->complete ? "incomplete"
		              : run->exited  ? "exit_status"
		                             : run->end);
	}
	otlp_attrs_end(w);
	if (run->denied > 0) {
		w->format->list(w, SPAN_EVENTS);
		otlp_each_line(fd, put_denial, &denials);
		w->format->list_end(w);
	}
	otlp_span_dropped(w, run->denied - denials.n);
	write_run_status(w, run);
	w->format->close(w);
}

static void write_phase(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                        enum otlp_phase p)
{
	static const char *const NAMES[PHASES] = { "sandbox.setup", "sandbox.run",
		                                   "sandbox.teardown" };
	const struct otlp_span s = {
		.name = NAMES[p],
		.trace_id = run->trace_id,
		.id = run->phase_id[p],
		.parent = run->span_id,
		.from_nano = otlp_nano(run, run->from_us[p]),
		.to_nano = otlp_nano(run, run->to_us[p]),
	};
	/* If there is no run phase, the set-up failed. */
	bool broken = p == PHASE_SETUP && !run->has[PHASE_RUN];

	assert(run->has[p]);
	otlp_span_begin(w, &s, c);
	otlp_attrs(w, SPAN_ATTRIBUTES);
	otlp_attr_str(w, "sandbox.run.id", run->id);
	otlp_attr_str(w, "sandbox.skill.name", run->skill);
	otlp_attrs_end(w);
	if (p == PHASE_RUN) {
		write_run_status(w, run);
	} else {
		otlp_span_status(w, !broken, "the skill was not started");
	}
	w->format->close(w);
}

void otlp_write_spans(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                      int fd)
{
	otlp_spans_begin(w, c);
	write_run_span(w, run, c, fd);
	for (int p = 0; p < PHASES; p++) {
		if (run->has[p]) {
			write_phase(w, run, c, (enum otlp_phase)p);
		}
	}
	otlp_request_end(w);
}
