/* event_text.h - an event as the record and the document tell it. */
#ifndef TRACE_EVENT_TEXT_H
#define TRACE_EVENT_TEXT_H

#include "trace/event.h"

/* How many bytes of its texts an event may tell: the first cuts nothing that a line can hold,
 * the last makes the longest texts fit 4 KiB, however they have to be escaped. */
#define EVENT_WIDTHS_COUNT 5
extern const struct event_width {
	size_t message;
	size_t path;
	size_t text;   /* program, raw */
	size_t remedy; /* which is told whole, or left out */
	size_t args;   /* of all of them */
} EVENT_WIDTHS[EVENT_WIDTHS_COUNT];

/* For people, made from what the event says; appended to `out`. */
void event_message(const struct event *e, struct buf *out);

/* What was tried, as the record says it; NULL: nothing. */
const char *event_op(const struct event *e);

bool event_has_data(const struct event *e);
/* The members of `data`. Where the width may have cut them, it says so. */
void event_put_data(struct json *j, const struct event *e, const struct event_width *w);

/* The first of EVENT_WIDTHS with which the event could fit so many bytes, by one look at its
 * paths; with the last, if none. */
size_t event_first_width(const struct event *e, size_t most);

/* A string, cut to `max` bytes with an ellipsis at its end. */
void event_put_text(struct json *j, const char *s, size_t len, size_t max);

#endif
