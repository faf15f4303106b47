/* otlp_spans.c - the run as a span, with one for each phase in it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "otel/otlp_fields.h"
#include "otel/otlp_limits.h"
#include "otel/otlp_record.h"
#include "base/own.h"

/* As OpenTelemetry names machines. */
static const char *arch_name(const char *machine)
{
	return strcmp(machine, "x86_64") == 0    ? "amd64"
	       : strcmp(machine, "aarch64") == 0 ? "arm64"
	                                         : machine;
}

static bool given_before(const struct otlp_pairs *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(p->v[i].name, p->v[n].name) == 0) {
			return true;
		}
	}
	return false;
}

/* The owner's, then ours where the owner has none; a key stands once. */
void otlp_write_resource(struct otlp *w, const struct otel_config *c)
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
		bool again = given_before(&c->resource, i);
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

void otlp_write_scope(struct otlp *w)
{
	w->format->open(w, OF_SCOPE);
	otlp_text(w, SCOPE_NAME, "skillsandbox", strlen("skillsandbox"));
	otlp_text(w, SCOPE_VERSION, SSB_VERSION, strlen(SSB_VERSION));
	w->format->close(w);
}

/* What the lines that are no events say of the run. */
static const struct row {
	const char *kind;
	const char *object; /* NULL: the line itself */
	const char *member;
	const char *attribute;
} ROWS[] = {
	{ "run", NULL, "run_id", "sandbox.run.id" },
	{ "run", NULL, "run_id", "sandbox.trace_id" },
	{ "run", NULL, "skill_name", "sandbox.skill.name" },
	{ "run", NULL, "skill_version", "sandbox.skill.version" },
	{ "run", NULL, "manifest", "sandbox.manifest.path" },
	{ "run", NULL, "manifest_digest", "sandbox.manifest.digest" },
	{ "run", NULL, "plan_digest", "sandbox.plan.digest" },
	{ "run", NULL, "audit", "sandbox.audit.level" },
	{ "run", NULL, "user", "process.user.id" },
	{ "run", NULL, "parent_run", "sandbox.parent_run.id" },
	{ "run", NULL, "session", "session.id" },
	{ "files", NULL, "files_digest", "sandbox.files.digest" },
	{ "files", NULL, "count", "sandbox.files.count" },
	{ "end", NULL, "exit_code", "sandbox.exit_code" },
	{ "end", NULL, "exit_code", "process.exit.code" },
	{ "end", NULL, "end", "sandbox.end" },
	{ "end", NULL, "signal", "sandbox.signal" },
	{ "end", "counters", "violations", "sandbox.violations.count" },
	{ "end", "counters", "events", "sandbox.events.count" },
	{ "end", "counters", "dropped", "sandbox.events.dropped" },
	{ "end", "counters", "repeats", "sandbox.events.repeated" },
	{ "end", "counters", "unreadable", "sandbox.events.unreadable" },
	{ "end", "counters", "stdout_bytes", "sandbox.stdout.bytes" },
	{ "end", "counters", "stderr_bytes", "sandbox.stderr.bytes" },
	{ "end", "summary", "all_prevented", "sandbox.violations.all_prevented" },
	{ "end", "summary", "total_enforcements", "sandbox.classification.total_enforcements" },
	{ "end", "summary", "max_severity", "sandbox.classification.max_severity" },
	{ "end", "summary", "classes", "sandbox.classification.classes" },
};

/* "sandbox.layer.net": "on" */
static void layer_attrs(struct otlp *w, const struct line *l)
{
	const struct json_node *layers = json_member(&l->doc, l->top, "layers");
	char key[96];

	if (!json_is(layers, JSON_OBJECT)) {
		return;
	}
	for (const struct json_node *n = json_first(&l->doc, layers); n != NULL;
	     n = json_next(&l->doc, n)) {
		snprintf(key, sizeof(key), "sandbox.layer.%.40s", n->key);
		otlp_attr_node(w, key, &l->doc, json_member(&l->doc, n, "state"));
	}
}

/* "sandbox.classification.<class>.count": 3 */
static void class_attrs(struct otlp *w, const struct line *l)
{
	const struct json_node *summary = json_member(&l->doc, l->top, "summary");
	const struct json_node *list = json_member(&l->doc, summary, "classifications");
	char key[128];

	if (!json_is(list, JSON_ARRAY)) {
		return;
	}
	for (const struct json_node *n = json_first(&l->doc, list); n != NULL;
	     n = json_next(&l->doc, n)) {
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
		if (strcmp(ROWS[i].kind, l->kind) != 0) {
			continue;
		}
		const struct json_node *from =
		        ROWS[i].object == NULL ? l->top
		                               : json_member(&l->doc, l->top, ROWS[i].object);
		otlp_attr_node(w, ROWS[i].attribute, &l->doc,
		               json_member(&l->doc, from, ROWS[i].member));
	}
	if (strcmp(l->kind, "layers") == 0) {
		layer_attrs(w, l);
	} else if (strcmp(l->kind, "end") == 0) {
		class_attrs(w, l);
		otlp_attr_int(w, "sandbox.duration_ms",
		              json_integer(json_member(&l->doc, l->top, "duration_us"), 0) / 1000);
	}
}

struct denials {
	struct otlp *w;
	const struct otlp_run *run;
	size_t n;
};

static void put_denial(void *arg, const struct line *l)
{
	struct denials *d = arg;
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

static bool went_well(const struct otlp_run *run)
{
	return run->complete && strcmp(run->end, "exited") == 0 && run->exit_code == 0;
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

static void write_run_status(struct otlp *w, const struct otlp_run *run)
{
	char text[96];

	snprintf(text, sizeof(text), "%s, exit status %" PRId64, run->end, run->exit_code);
	otlp_span_status(w, went_well(run), run->complete ? text : "the record has no end");
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

static void write_run_span(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                           int fd)
{
	struct denials denials = { w, run, 0 };
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
	if (!went_well(run)) {
		bool exited = strcmp(run->end, "exited") == 0;
		otlp_attr_str(w, "error.type",
		              !run->complete ? "incomplete"
		              : exited       ? "exit_status"
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
	/* Without a run after it, the set-up is what failed. */
	bool broken = p == PHASE_SETUP && !run->has[PHASE_RUN];

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

void otlp_spans_begin(struct otlp *w, const struct otel_config *c)
{
	const struct otlp_format *f = w->format;

	f->begin(w);
	f->list(w, REQUEST_SPANS);
	f->item(w, REQUEST_SPANS);
	otlp_write_resource(w, c);
	f->list(w, SCOPE_SPANS);
	f->item(w, SCOPE_SPANS);
	otlp_write_scope(w);
	f->list(w, SPANS);
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
