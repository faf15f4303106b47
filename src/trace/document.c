/* document.c - writes trace.json. */
#include "trace/document.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "trace/trace_limits.h"
#include "base/error.h"
#include "base/name.h"
#include "os/file.h"

static const char *const STATES[] = {
	[LAYER_NOT_APPLIED] = "not_applied",
	[LAYER_ON] = "on",
	[LAYER_OFF_BEST_EFFORT] = "off_best_effort",
};

enum layer_state layers_state_from(const char *name)
{
	int state = name != NULL ? 0 : LAYER_ON;

	while (name != NULL && state < LAYER_OTHER && strcmp(STATES[state], name) != 0) {
		state++;
	}
	return (enum layer_state)state;
}

void layers_write(struct json *j, const struct layer_report layers[LAYER_COUNT])
{
	json_open(j, '{');
	for (int i = 0; layers != NULL && i < LAYER_COUNT; i++) {
		json_key(j, plan_layer_name((enum layer_id)i));
		json_open(j, '{');
		json_kstr(j, "state", STATES[layers[i].state]);
		json_kstr(j, "detail", layers[i].detail);
		json_close(j, '}');
	}
	json_close(j, '}');
}

void document_init(struct document *d, struct trace_file *file)
{
	*d = (struct document){ .file = file };
	buf_init(&d->out, DOCUMENT_BUFFER);
	buf_init(&d->kept, TRACE_VIOLATION_BYTES);
	json_init(&d->json, &d->out, false);
}

void document_done(struct document *d)
{
	buf_done(&d->out);
	buf_done(&d->kept);
}

/* Writes the buffer into the file. The first call creates the file, and gives the record its final
 * name (trace_file_settle()). */
static int flush_document(struct document *d)
{
	if (d->out.failed) {
		ssb_fail(&d->failure, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	if (d->failure.code == SSB_OK && trace_file_settle(d->file, &d->failure) == 0 &&
	    file_write_all(d->file->fd, d->out.data, d->out.len) != 0) {
		ssb_fail(&d->failure, SSB_E_SYS, errno, "trace", "cannot write '%.200s'",
		         d->file->path);
	}
	buf_reset(&d->out);
	return d->failure.code == SSB_OK ? 0 : -1;
}

/* Makes room for `len` bytes in the buffer. A failure is stored in d->failure. */
static void make_room(struct document *d, size_t len)
{
	if (d->out.len + len > DOCUMENT_BUFFER) {
		(void)flush_document(d);
	}
}

/* Writes a text that may be larger than the buffer. */
static void put_long(struct document *d, const char *p, size_t left)
{
	while (left > 0) {
		size_t n = left < DOCUMENT_BUFFER / 2 ? left : DOCUMENT_BUFFER / 2;
		make_room(d, n);
		buf_add(&d->out, p, n);
		p += n;
		left -= n;
	}
}

void document_begin(struct document *d, const struct ssb_plan *plan, const char *plan_json,
                    const char *id, const char *time)
{
	struct json *j = &d->json;

	json_open(j, '{');
	json_kint(j, "schema_version", TRACE_SCHEMA_VERSION);
	json_kstr(j, "trace_id", id);
	json_kstr(j, "run_id", id);
	json_kstr(j, "skill_name", plan->name);
	json_kstr(j, "skill_version", plan->version);
	json_kstr(j, "started_at", time);
	json_key(j, "plan");
	json_raw(j, "", 0);
	put_long(d, plan_json, strlen(plan_json));
	json_kopen(j, "events", '[');
}

static void put_event(struct buf *out, const struct document_event *e)
{
	buf_adds(out, "{\"timestamp\":\"");
	buf_adds(out, e->time);
	buf_adds(out, "\",\"kind\":\"");
	buf_adds(out, event_kind_name(e->kind));
	buf_adds(out, "\",\"message\":");
	buf_add(out, e->message.p, e->message.n);
	if (e->data.p != NULL) {
		buf_adds(out, ",\"data\":");
		buf_add(out, e->data.p, e->data.n);
	}
	buf_addc(out, '}');
}

static void keep_violation(struct document *d, const struct document_event *e, size_t bytes)
{
	d->violations++;
	if (!rooms_take(&d->kept_rooms, e->room, bytes, IN_VIOLATIONS)) {
		return;
	}
	size_t before = d->kept.len;
	buf_adds(&d->kept, d->violations_kept > 0 ? ",\n" : "\n");
	put_event(&d->kept, e);
	if (d->kept.failed) {
		d->kept.failed = false;
		d->kept.len = before;
		return;
	}
	d->violations_kept++;
}

void document_event(struct document *d, const struct document_event *e)
{
	assert(event_kind_name(e->kind) != NULL && e->message.p != NULL);

	size_t bytes = e->message.n + e->data.n + 128;

	if (e->violation) {
		keep_violation(d, e, bytes);
	}
	if (!rooms_take(&d->rooms, e->room, bytes, IN_DOCUMENT)) {
		d->events_dropped++;
		return;
	}
	make_room(d, bytes);
	buf_addc(&d->out, '\n');
	json_raw(&d->json, "", 0);
	put_event(&d->out, e);
	d->events++;
}

static void put_violations(struct document *d, const struct classes *classes)
{
	struct json *j = &d->json;

	json_kopen(j, "policy_violations", '[');
	put_long(d, d->kept.data, d->kept.len);
	json_close(j, ']');
	make_room(d, TRACE_TAIL_BYTES);
	if (!classes_empty(classes)) {
		json_key(j, "violation_summary");
		classes_write(classes, j);
	}
}

static void put_result(struct json *j, const struct ssb_result *r)
{
	json_key(j, "result");
	if (r == NULL) {
		json_null(j);
		return;
	}
	json_open(j, '{');
	json_kstr(j, "end", name_of_end(r->end));
	json_kint(j, "exit_status", r->exit_status);
	json_kint(j, "signal", r->signal);
	json_kuint(j, "duration_us", r->duration_us);
	json_kuint(j, "stdout_bytes", r->stdout_bytes);
	json_kuint(j, "stderr_bytes", r->stderr_bytes);
	json_kbool(j, "stdout_cut", r->stdout_cut != 0);
	json_kbool(j, "stderr_cut", r->stderr_cut != 0);
	json_close(j, '}');
}

int document_end(struct document *d, const struct document_end *end)
{
	struct json *j = &d->json;

	make_room(d, TRACE_TAIL_BYTES);
	buf_addc(&d->out, '\n');
	json_close(j, ']');
	json_kstr(j, "completed_at", end->time);
	json_key(j, "exit_code");
	if (end->result != NULL) {
		json_int(j, end->result->exit_status);
	} else {
		json_null(j);
	}
	put_violations(d, end->classes);
	json_key(j, "layers");
	layers_write(j, end->layers);
	put_result(j, end->result);
	json_kopen(j, "counters", '{');
	json_kuint(j, "events", d->events);
	json_kuint(j, "events_dropped", d->events_dropped);
	json_kuint(j, "repeats", end->repeats);
	json_kuint(j, "violations", end->violations);
	json_kuint(j, "violations_dropped",
	           d->violations - d->violations_kept + end->classes->unwritten);
	json_close(j, '}');
	json_close(j, '}');
	buf_addc(&d->out, '\n');
	if (flush_document(d) != 0 || trace_file_publish(d->file, &d->failure) != 0) {
		trace_file_discard(d->file);
		return -1;
	}
	return 0;
}
