/* trace.c - a run's trace: every event to the record and to the document.
 *
 * The order of the record: `run` (on the disk before the skill starts),
 * events, `layers` among the first of them, the counted repeats, `files`,
 * `end`, `signature`. TRACE_RESERVE_LINES and _BYTES are kept for what must
 * not be missing; everything else past the caps is counted. */
#include "audit/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

#include "audit/event_text.h"
#include "audit/trace_limits.h"
#include "audit/trace_priv.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"

/* Message and data of one event: with what is around them they fit a line. */
#define TEXT_BYTES    (TRACE_LINE_BYTES - 512)
#define MESSAGE_BYTES ((size_t)3 * MAX_PATH_BYTES)

/* A random UUID (version 4). */
static int draw_id(char out[37], struct ssb_error *err)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace", "cannot draw a run id");
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

static void trace_freep(struct trace **t)
{
	trace_free(*t);
}

static int begin(struct trace *t, struct ssb_error *err)
{
	auto_free char *plan = plan_json(t->plan, false);

	if (plan == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	if (trace_put_run(t, plan, err) != 0) {
		return -1;
	}
	document_begin(&t->document, t->plan, plan, t->id, record_time(&t->record));
	return 0;
}

int trace_open(const struct ssb_plan *plan, const struct owner *owner, struct trace **ret,
               struct ssb_error *err)
{
	AUTO(trace_freep) struct trace *t = calloc(1, sizeof(*t));
	if (t == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	t->plan = plan;
	t->owner = *owner;
	t->file = (struct trace_file)TRACE_FILE_NONE;
	t->digest = (struct digest)DIGEST_NONE;
	record_init(&t->record);
	document_init(&t->document, &t->file);
	classes_init(&t->classes, plan->home);
	buf_init(&t->message, MESSAGE_BYTES);
	buf_init(&t->text, TEXT_BYTES);
	if (draw_id(t->id, err) != 0 || trace_check_key(owner, err) != 0 ||
	    trace_file_open(&t->file, plan, owner, t->id, err) != 0) {
		return -1;
	}
	t->record.fd = t->file.record_fd;
	t->record.path = t->file.record_path;
	if (begin(t, err) != 0) {
		return -1;
	}
	if (plan->on_record != NULL) {
		plan->on_record(plan->on_record_arg, t->record.fd);
	}
	*ret = steal_ptr(&t);
	return 0;
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

/* The skill's own directory, as it was judged. */
static int skill_fd(const struct ssb_plan *plan)
{
	for (size_t i = 0; i < plan->n_grants; i++) {
		if (plan->grants[i].origin == ORIGIN_SKILL && plan->grants[i].is_dir) {
			return plan->grants[i].fd;
		}
	}
	return -1;
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

void trace_digest(struct trace *t)
{
	int skill = skill_fd(t->plan);

	if (skill >= 0) {
		digest_start(&t->digest, skill, t->owner.state_dir);
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

/* There is something to write. What was denied does not wait. */
static void due(struct trace *t, bool urgent)
{
	if (urgent || t->due_ms == 0) {
		t->due_ms = urgent ? 1 : clock_ms() + RECORD_WAIT_MS;
	}
}

static bool has_room(const struct trace *t, bool ending, bool violation)
{
	uint64_t lines = ending ? 8 : TRACE_RESERVE_LINES;
	uint64_t bytes = ending ? 4 * TRACE_LINE_BYTES : TRACE_RESERVE_BYTES;

	if (!ending && !violation) {
		lines += TRACE_VIOLATION_LINES;
		bytes += TRACE_VIOLATION_ROOM;
	}
	return t->record.seq < TRACE_MAX_LINES - lines && t->record.bytes < TRACE_MAX_BYTES - bytes;
}

/* Message and data as JSON, one behind the other in t->text. */
static bool render(struct trace *t, const struct event *e, bool narrow, size_t *ret_message)
{
	const size_t max = narrow ? TRACE_CUT_BYTES : MAX_EVENT_TEXT;
	struct bytes message = e->message;
	struct json j;

	if (message.p == NULL) {
		buf_reset(&t->message);
		event_message(e, &t->message);
		message = (struct bytes){ t->message.data, t->message.len };
	}
	buf_reset(&t->text);
	json_init(&j, &t->text, false);
	event_put_text(&j, message.p, message.n, max);
	*ret_message = t->text.len;
	if (event_has_data(e)) {
		json_open(&j, '{');
		event_put_data(&j, e, narrow);
		json_close(&j, '}');
	}
	return !t->text.failed;
}

/* True if the record has it; the document never has more than the record. */
static bool write_event(struct trace *t, const struct event *e)
{
	size_t message;

	if (!has_room(t, event_is_ending(e->kind), e->violation) ||
	    (!render(t, e, false, &message) && !render(t, e, true, &message))) {
		return false;
	}
	struct document_event doc = {
		.kind = e->kind,
		.violation = e->violation,
		.message = { t->text.data, message },
	};
	t->record.ago_us = e->at_us != 0 ? clock_us() - e->at_us : 0;
	struct json *j = record_begin(&t->record, event_kind_name(e->kind));
	t->record.ago_us = 0;
	json_key(j, "message");
	json_raw(j, doc.message.p, doc.message.n);
	if (e->violation) {
		json_kbool(j, "violation", true);
	}
	if (t->text.len > message) {
		doc.data = (struct bytes){ t->text.data + message, t->text.len - message };
		json_key(j, "data");
		json_raw(j, doc.data.p, doc.data.n);
	}
	if (!record_end(&t->record)) {
		return false;
	}
	doc.time = record_time(&t->record);
	document_event(&t->document, &doc);
	t->events++;
	due(t, e->violation);
	return true;
}

static uint64_t times_of(const struct event *e)
{
	return e->times > 0 ? e->times : 1;
}

/* No line tells of these repeats: they do not count as told. */
static void drop_repeat(struct trace *t, const struct fold_entry *f)
{
	t->repeats -= f->count;
	t->dropped += f->count;
}

static void put_repeat(struct trace *t, const struct fold_entry *f)
{
	struct stamp stamp = STAMP_NONE;
	struct timespec first = { f->first_us / 1000000, f->first_us % 1000000 * 1000 };
	struct timespec last = { f->last_us / 1000000, f->last_us % 1000000 * 1000 };
	struct json *j = record_begin(&t->record, event_kind_name(f->kind));

	json_kuint(j, "repeat_of", f->seq);
	json_kuint(j, "count", f->count);
	json_kstr(j, "first", stamp_text(&stamp, &first));
	json_kstr(j, "last", stamp_text(&stamp, &last));
	if (!record_end(&t->record)) {
		drop_repeat(t, f);
	}
	due(t, false);
}

/* An attempt like one before? Else it is entered once it is written. */
static bool fold_repeat(struct trace *t, const struct event *e, const struct fold_key *key)
{
	struct fold_entry *same = fold_find(&t->fold, key);
	struct timespec now;

	if (same == NULL) {
		return false;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	same->last_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 -
	                (e->at_us != 0 ? (int64_t)(clock_us() - e->at_us) : 0);
	same->count += times_of(e);
	t->repeats += times_of(e);
	classes_add(&t->classes, e, same->seq);
	return true;
}

static void fold_enter(struct trace *t, const struct event *e, const struct fold_key *key)
{
	struct fold_entry gone;
	struct fold_entry entry = { .key = *key,
		                    .seq = t->record.seq - 1,
		                    .count = times_of(e) - 1,
		                    .first_us = t->record.wall_us,
		                    .last_us = t->record.wall_us,
		                    .kind = e->kind };

	t->repeats += entry.count;
	if (fold_put(&t->fold, &entry, &gone)) {
		if (has_room(t, false, true)) {
			put_repeat(t, &gone);
		} else {
			drop_repeat(t, &gone);
		}
	}
}

void trace_add(struct trace *t, const struct event *e)
{
	struct fold_key key;

	assert(event_kind_name(e->kind) != NULL);
	if (t->closed) {
		return; /* nothing may follow the signature */
	}
	if (t->tally != NULL && !e->tallied) {
		trace_again(t, e);
	}
	t->violations += e->violation ? times_of(e) : 0;
	t->unreadable +=
	        e->reason != NULL && strcmp(e->reason, "unreadable") == 0 ? times_of(e) : 0;
	if (e->status != STATUS_NONE) {
		key = fold_key(e);
		if (fold_repeat(t, e, &key)) {
			return;
		}
	}
	if (!write_event(t, e)) {
		t->dropped += times_of(e);
		t->document.events_dropped++;
		classes_add(&t->classes, e, CLASS_NO_LINE);
		return;
	}
	classes_add(&t->classes, e, t->record.seq - 1);
	if (e->status != STATUS_NONE) {
		fold_enter(t, e, &key);
	}
}

void trace_dropped(struct trace *t, uint64_t n)
{
	t->dropped += n;
}

static void put_not_listed(struct json *j, void *arg)
{
	json_kstr(j, "reason", "not_listed");
	json_kuint(j, "count", *(const uint64_t *)arg);
}

void trace_not_listed(struct trace *t, enum event_kind kind, bool violation, uint64_t n,
                      bool tallied)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "not_listed, %llu times", (unsigned long long)n);

	trace_add(t, &(struct event){ .kind = kind,
	                              .violation = violation,
	                              .times = n,
	                              .tallied = tallied,
	                              .message = { text, (size_t)len },
	                              .more = put_not_listed,
	                              .more_arg = &n });
}

void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len)
{
	trace_add(t, &(struct event){ .kind = kind, .message = { message, len } });
}

void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg)
{
	trace_add(t, &(struct event){ .kind = kind,
	                              .violation = violation,
	                              .message = { message, strlen(message) },
	                              .more = data,
	                              .more_arg = arg });
}

static void add_formatted(struct trace *t, enum event_kind kind, bool violation, const char *fmt,
                          va_list ap)
{
	/* One byte more than a message may have: then its cut is marked. */
	char message[MAX_EVENT_TEXT + 2];
	int n = vsnprintf(message, sizeof(message), fmt, ap);
	size_t len = n < 0 ? 0 : n > MAX_EVENT_TEXT ? MAX_EVENT_TEXT + 1 : (size_t)n;

	trace_add(t, &(struct event){
	                     .kind = kind, .violation = violation, .message = { message, len } });
}

void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_formatted(t, kind, false, fmt, ap);
	va_end(ap);
}

void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_formatted(t, kind, true, fmt, ap);
	va_end(ap);
}

void trace_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT])
{
	if (!t->layers_told) {
		trace_put_layers(t, layers);
		t->layers_told = true;
		due(t, false);
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

static void put_repeats(struct trace *t)
{
	struct fold_entry e;
	size_t at = 0;

	/* A look through the whole table takes its every page from the kernel. */
	while (t->repeats > 0 && fold_take(&t->fold, &at, &e)) {
		put_repeat(t, &e);
	}
}

int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err)
{
	struct document_end end = { .layers = layers, .result = result };

	if (trace_broken(t)) {
		trace_file_discard(&t->file);
		return tell_failure(t, err);
	}
	if (layers != NULL) {
		trace_layers(t, layers);
	}
	put_repeats(t);
	trace_put_files(t);
	/* Only what came before the skill is waited for on the disk. The rest goes
	 * there at the kernel's own pace: a sync here would cost every run as much
	 * as building its sandbox, to save the last seconds before a power cut. */
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
	digest_stop(&t->digest);
	trace_file_done(&t->file);
	record_done(&t->record);
	document_done(&t->document);
	fold_done(&t->fold);
	buf_done(&t->message);
	buf_done(&t->text);
	free(t);
}
