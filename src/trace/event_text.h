/* event_text.h - writes an event as text, for the record and the document. */
#ifndef TRACE_EVENT_TEXT_H
#define TRACE_EVENT_TEXT_H

#include "trace/event.h"

/* A width says how many bytes of each text of an event are written; longer texts are cut. The first
 * row is the widest: it cuts only texts that no line could contain. With the last row, the longest
 * texts together take at most 4 KiB, even if every byte must be escaped. */
#define EVENT_WIDTHS_COUNT 5
extern const struct event_width {
	size_t message;
	size_t path;
	size_t text;   /* program, raw, attribute */
	size_t remedy; /* a longer remedy is left out, never cut */
	size_t args;   /* of all arguments together */
} EVENT_WIDTHS[EVENT_WIDTHS_COUNT];

/* Appends a message for people, made from the members of the event. */
void event_message(const struct event *e, struct buf *out);

/* Returns the operation's name in the record; NULL if there is none. */
const char *event_op(const struct event *e);

bool event_has_data(const struct event *e);
/* Writes the members of `data`. If `w` is not the first row of EVENT_WIDTHS, adds "cut": true. */
void event_put_data(struct json *j, const struct event *e, const struct event_width *w);

/* Returns the index of the first row of EVENT_WIDTHS with which the event may fit `most` bytes, or
 * of the last row if none does. Only the longest texts are measured. */
size_t event_first_width(const struct event *e, size_t most);

/* Writes a string, cut to `max` bytes with an ellipsis at its end. */
void event_put_text(struct json *j, const char *s, size_t len, size_t max);

#endif
