/* trace_add.c - adds each event to the record and to the document, and counts repeats. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "trace/event_text.h"
#include "trace/trace_limits.h"
#include "trace/trace_priv.h"
#include "base/limits.h"
#include "base/stamp.h"
#include "os/clock.h"

void trace_make_due(struct trace *t, bool urgent)
{
	if (urgent || t->due_ms == 0) {
		t->due_ms = urgent ? 1 : clock_ms() + RECORD_WAIT_MS;
	}
}

/* Writes message and data as JSON, one after the other, into t->text. `w` says how long each text
 * may be (event_text.h). Returns false if t->text is too small. */
static bool render_width(struct trace *t, const struct event *e, const struct event_width *w,
                         size_t *ret_message)
{
	struct bytes message = e->message;
	struct json j;

	if (message.p == NULL) {
		buf_reset(&t->message);
		event_message(e, &t->message);
		message = (struct bytes){ t->message.data, t->message.len };
	}
	buf_reset(&t->text);
	json_init(&j, &t->text, false);
	event_put_text(&j, message.p, message.n, w->message);
	*ret_message = t->text.len;
	if (event_has_data(e)) {
		json_open(&j, '{');
		event_put_data(&j, e, w);
		json_close(&j, '}');
	}
	return !t->text.failed;
}

/* Writes the event into t->text, and shortens its texts until its line fits the room's limit for
 * one line. Tries the rows of EVENT_WIDTHS from the widest to the narrowest. Returns false if even
 * the narrowest is too long. */
static bool render_event(struct trace *t, const struct event *e, enum room room,
                         size_t *ret_message)
{
	/* The room of a derived class has a line limit of 0, but no event belongs to such a
	 * room. */
	assert(ROOMS[room].line > TRACE_LINE_FRAME);
	const size_t most = ROOMS[room].line - TRACE_LINE_FRAME;

	for (size_t i = event_first_width(e, most); i < EVENT_WIDTHS_COUNT; i++) {
		if (render_width(t, e, &EVENT_WIDTHS[i], ret_message) && t->text.len <= most) {
			return true;
		}
	}
	return false;
}

/* Writes the event to the record and then to the document. Returns false if the record has no room;
 * then the document does not get the event either. */
static bool write_event(struct trace *t, const struct event *e, enum room room)
{
	size_t message;

	if (!rooms_left(&t->rooms, room, IN_RECORD) || !render_event(t, e, room, &message) ||
	    !rooms_take(&t->rooms, room, t->text.len + TRACE_LINE_FRAME, IN_RECORD)) {
		return false;
	}
	struct document_event doc = {
		.kind = e->kind,
		.room = room,
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
	trace_make_due(t, e->violation);
	return true;
}

static uint64_t count_times(const struct event *e)
{
	return e->times > 0 ? e->times : 1;
}

/* Counts the repeats of `f` as dropped events instead of repeats, because no line could be written
 * for them. */
static void drop_repeat(struct trace *t, const struct fold_entry *f)
{
	t->repeats -= f->count;
	t->rooms.dropped[f->room] += f->count;
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
	trace_make_due(t, false);
}

/* Counts an attempt if it equals an earlier one. Returns false if the attempt is new: then the
 * caller must write it, and add it with fold_enter(). */
static bool fold_repeat(struct trace *t, const struct event *e, struct class_verdict class,
                        const struct fold_key *key)
{
	struct fold_entry *same = fold_find(&t->fold, key);
	struct timespec now;

	if (same == NULL) {
		return false;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	same->last_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 -
	                (e->at_us != 0 ? (int64_t)(clock_us() - e->at_us) : 0);
	same->count += count_times(e);
	t->repeats += count_times(e);
	classes_count(&t->classes, e, class, same->seq);
	return true;
}

static void fold_enter(struct trace *t, const struct event *e, enum room room,
                       const struct fold_key *key)
{
	struct fold_entry gone;
	struct fold_entry entry = { .key = *key,
		                    .seq = t->record.seq - 1,
		                    .count = count_times(e) - 1,
		                    .first_us = t->record.wall_us,
		                    .last_us = t->record.wall_us,
		                    .kind = e->kind,
		                    .room = room };

	t->repeats += entry.count;
	if (fold_put(&t->fold, &entry, &gone)) {
		if (rooms_take(&t->rooms, gone.room, TRACE_REPEAT_LINE, IN_RECORD)) {
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
	const struct class_verdict class = classes_of(e, t->classes.home);
	if (t->tally != NULL && !e->tallied) {
		trace_again(t, e);
	}
	t->violations += e->violation ? count_times(e) : 0;
	t->unreadable += e->reason == REASON_UNREADABLE ? count_times(e) : 0;
	if (e->status != STATUS_NONE) {
		key = fold_key(e);
		if (fold_repeat(t, e, class, &key)) {
			return;
		}
	}
	enum room room = room_of(e, class.id);
	if (!write_event(t, e, room)) {
		t->rooms.dropped[room] += count_times(e);
		t->document.events_dropped++;
		classes_count(&t->classes, e, class, CLASS_NO_LINE);
		return;
	}
	classes_count(&t->classes, e, class, t->record.seq - 1);
	if (e->status != STATUS_NONE) {
		fold_enter(t, e, room, &key);
	}
}

void trace_dropped(struct trace *t, enum room room, uint64_t n)
{
	assert((unsigned)room < ROOM_COUNT);
	t->rooms.dropped[room] += n;
}

uint64_t trace_all_dropped(const struct trace *t)
{
	uint64_t all = 0;

	for (size_t i = 0; i < ROOM_COUNT; i++) {
		all += t->rooms.dropped[i];
	}
	return all;
}

static void put_not_listed(struct json *j, void *arg)
{
	json_kstr(j, "reason", reason_code(REASON_NOT_LISTED));
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
	/* One byte more than a message may have, so that trace_add() notices that the message must
	 * be cut. */
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

void trace_put_repeats(struct trace *t)
{
	struct fold_entry e;
	size_t at = 0;

	/* If there are no repeats, do not search the table: the search would access each of its
	 * pages. */
	while (t->repeats > 0 && fold_take(&t->fold, &at, &e)) {
		put_repeat(t, &e);
	}
}
