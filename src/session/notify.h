/* notify.h - messages to the owner: Slack, PagerDuty, plain JSON with an HMAC.
 * A herald, a process of its own that nobody waits for, empties the outbox of
 * the store: bounded tries, later and later, each delivery in the ledger. */
#ifndef SESSION_NOTIFY_H
#define SESSION_NOTIFY_H

#include "base/buf.h"
#include "session/session.h"

/* The body for one receiver from the event's JSON. */
int notify_body(const struct outbox_item *item, struct buf *out, struct ssb_error *err);
/* Starts a herald, detached; -1 only where that is not possible. */
int notify_start(const struct owner *o, struct ssb_error *err);
/* What the herald does: until the outbox is empty, or `deadline_ms` (clock_ms()). */
int notify_deliver(struct sessions *ss, uint64_t deadline_ms, struct ssb_error *err);

#endif
