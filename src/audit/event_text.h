/* event_text.h - an event as the record and the document tell it. */
#ifndef AUDIT_EVENT_TEXT_H
#define AUDIT_EVENT_TEXT_H

#include "audit/event.h"

/* Belongs to how a run ended: may use what is kept free for that. */
bool event_is_ending(enum event_kind kind);

/* For people, made from what the event says; appended to `out`. */
void event_message(const struct event *e, struct buf *out);

bool event_has_data(const struct event *e);
/* The members of `data`. Narrow: with short texts, where the line would be too
 * long otherwise; it says so. */
void event_put_data(struct json *j, const struct event *e, bool narrow);

/* A string, cut to `max` bytes with an ellipsis at its end. */
void event_put_text(struct json *j, const char *s, size_t len, size_t max);

#endif
