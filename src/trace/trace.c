/* trace.c - begins and ends a run's trace; trace_add.c adds its events.
 *
 * The order of the lines in the record is: `run` (on the disk before the skill starts), then the
 * events with `layers` among the first of them, then the repeats, `files`, `end` and `signature`.
 * TRACE_RESERVE_LINES and TRACE_RESERVE_BYTES reserve space for the lines that must not be missing.
 * The rest is divided among the kinds of events (room.h); events that do not fit are counted. */
#include "trace/trace.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "trace/trace_limits.h"
#include "trace/trace_priv.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"

/* The largest message and data of one event, so that they fit a line with the other members. */
#define TEXT_BYTES    (TRACE_LINE_BYTES - 512)
#define MESSAGE_BYTES ((size_t)3 * MAX_PATH_BYTES)

/* Writes a random UUID (version 4) to `out`. */
static int draw_id(char out[37], struct ssb_error *err)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace",
		                "cannot get random bytes for the id of the run");
	}
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0, o = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10) {
			out[o++] = '-';
		}
		out[o++] = "0123456789abcdef"[b[i] >> 4];
		out[o++] = "0123456789abcdef"[b[i] & 15];
	}
	out[36] = '\0';
	return 0;
}

OWN_FREEP(trace_freep, struct trace, trace_free)

static int begin_record(struct trace *t, const struct prepared *of_run, struct ssb_error *err)
{
	auto_free char *plan = plan_json(t->plan, of_run, false);

	if (plan == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	if (trace_put_run(t, plan, err) != 0) {
		return -1;
	}
	document_begin(&t->document, t->plan, plan, t->id, record_time(&t->record));
	return 0;
}

int trace_open(const struct ssb_plan *plan, const struct prepared *of_run,
               const struct owner *owner, struct trace **ret, struct ssb_error *err)
{
	AUTO(trace_freep) struct trace *t = calloc(1, sizeof(*t));
	if (t == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	t->plan = plan;
	t->owner = *owner;
	t->file = (struct trace_file)TRACE_FILE_NONE;
	t->files = (struct files_line)FILES_LINE_NONE;
	record_init(&t->record);
	document_init(&t->document, &t->file);
	classes_init(&t->classes, plan->home);
	buf_init(&t->message, MESSAGE_BYTES);
	buf_init(&t->text, TEXT_BYTES);
	if (draw_id(t->id, err) != 0 || trace_check_key(owner, err) != 0 ||
	    trace_file_open(&t->file, plan, of_run, owner, t->id, err) != 0) {
		return -1;
	}
	t->record.fd = t->file.record_fd;
	t->record.path = t->file.record_path;
	if (begin_record(t, of_run, err) != 0) {
		return -1;
	}
	*ret = steal_ptr(&t);
	return 0;
}

int trace_fd(const struct trace *t)
{
	return t->record.fd;
}

const struct ssb_error *trace_failure(const struct trace *t)
{
	return t->record.failure.code != SSB_OK     ? &t->record.failure
	       : t->document.failure.code != SSB_OK ? &t->document.failure
	                                            : &t->failure;
}

bool trace_broken(const struct trace *t)
{
	return trace_failure(t)->code != SSB_OK;
}

static int tell_failure(const struct trace *t, struct ssb_error *err)
{
	if (err != NULL && err->code == SSB_OK) {
		*err = *trace_failure(t);
	}
	return -1;
}

int trace_sync(struct trace *t, struct ssb_error *err)
{
	t->due_ms = 0;
	return record_sync(&t->record) != 0 || trace_broken(t) ? tell_failure(t, err) : 0;
}

void trace_timestamp(char out[TRACE_TIMESTAMP])
{
	struct stamp now = STAMP_NONE;
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(out, TRACE_TIMESTAMP, "%s", stamp_text(&now, &ts));
}

void trace_place(struct trace *t)
{
	(void)trace_file_settle(&t->file, &t->failure);
}

void trace_digest(struct trace *t, bool at_end)
{
	int skill = plan_skill_fd(t->plan);

	if (skill >= 0 && at_end) {
		files_line_read(&t->files, skill);
	}
	if (skill >= 0) {
		files_line_start(&t->files, skill, t->owner.state_dir);
	}
}

uint64_t trace_due(const struct trace *t)
{
	return t->due_ms;
}

void trace_tick(struct trace *t)
{
	if (t->due_ms != 0 && clock_ms() >= t->due_ms) {
		(void)record_flush(&t->record);
		t->due_ms = 0;
	}
}

void trace_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT])
{
	if (!t->layers_told) {
		trace_put_layers(t, layers);
		t->layers_told = true;
		trace_make_due(t, false);
	}
}

void trace_failed(struct trace *t, bool started, const struct ssb_error *why)
{
	t->failed = true;
	trace_eventf(t, EV_SKILL_FAILED, "%s: %s: %s",
	             started ? "the sandbox failed" : "not started", why->where, why->text);
}

size_t trace_violations(const struct trace *t)
{
	return t->violations;
}

void trace_classes(const struct trace *t, char *out, size_t size, const char **ret_severity)
{
	classes_names(&t->classes, out, size, ret_severity);
}

const char *trace_id(const struct trace *t)
{
	return t->id;
}

const char *trace_path(const struct trace *t)
{
	return t->file.path;
}

int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err)
{
	struct document_end end = { .layers = layers, .result = result };

	assert(!t->closed);
	if (trace_broken(t)) {
		trace_file_discard(&t->file);
		return tell_failure(t, err);
	}
	if (layers != NULL) {
		trace_layers(t, layers);
	}
	trace_put_repeats(t);
	trace_put_files(t);
	/* No sync here: it would cost every run as much as building its sandbox, and would only
	 * save the last seconds before a power failure. Only the lines from before the start of the
	 * skill are synced to the disk; the kernel writes the others later. */
	t->closed = true;
	if (trace_put_end(t, result, &t->failure) != 0 || record_flush(&t->record) != 0) {
		trace_file_discard(&t->file);
		return tell_failure(t, err);
	}
	end.time = record_time(&t->record);
	end.classes = &t->classes;
	end.violations = t->violations;
	end.repeats = t->repeats;
	if (document_end(&t->document, &end) != 0 || trace_broken(t)) {
		return tell_failure(t, err);
	}
	return 0;
}

void trace_free(struct trace *t)
{
	if (t == NULL) {
		return;
	}
	files_line_stop(&t->files);
	trace_file_done(&t->file);
	record_done(&t->record);
	document_done(&t->document);
	fold_done(&t->fold);
	buf_done(&t->message);
	buf_done(&t->text);
	free(t);
}
