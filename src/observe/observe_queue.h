/* observe_queue.h - passes events from the observer's thread to the supervisor, which alone writes
 * the trace.
 *
 * There are two buffers of fixed size: one is filled while the other is emptied. An event that does
 * not fit is counted and dropped, because waiting would delay the skill, too. A flood of ordinary
 * events must not displace the events that matter (room_matters()), and a flood of events that
 * matter must not displace a violation. Therefore both have reserved room, and wait up to
 * QUEUE_WAIT_MS for it. If there is still no room, the event is only counted. Violations without
 * room are counted by kind, and each count becomes a line. */
#ifndef OBSERVE_OBSERVE_QUEUE_H
#define OBSERVE_OBSERVE_QUEUE_H

#include <pthread.h>

#include "trace/trace.h"

#define QUEUE_BYTES ((size_t)1 << 20)
/* bytes that are reserved for violations, and as many for events that matter */
#define QUEUE_RESERVE ((size_t)128 << 10)
#define QUEUE_WAIT_MS 200 /* how long such an event waits for room */

struct observe_queue {
	pthread_mutex_t lock;
	int wake;   /* eventfd: readable when the buffer `fill` has events */
	char *fill; /* being filled */
	size_t used;
	uint64_t dropped[ROOM_COUNT];
	uint64_t crowded[EV_COUNT]; /* violations that found no room, by kind */
	char *spare;                /* being emptied */
};

/* Returns 0, or -1 if there is no memory or no fd. */
int observe_queue_init(struct observe_queue *q);
void observe_queue_done(struct observe_queue *q);

/* Copies the event and everything that it points to. May wait up to QUEUE_WAIT_MS for room. */
void observe_queue_put(struct observe_queue *q, const struct event *e);

/* Adds all queued events to the trace. */
void observe_queue_empty(struct observe_queue *q, struct trace *t);

#endif
