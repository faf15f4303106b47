/* observe_queue.h - events on their way from the observer's thread to the supervisor, which alone
 * writes the trace.
 *
 * There are two buffers of fixed size: one is filled while the other is emptied. An event that
 * does not fit is counted, because waiting would make the skill wait, too. But no flood may push
 * out the events that matter (room.h), and a flood of those may not push out a violation: both
 * have reserved room, and wait for a while. If the buffer is not emptied in that time, the event
 * is only counted, a violation by its kind, which becomes a line. */
#ifndef OBSERVE_OBSERVE_QUEUE_H
#define OBSERVE_OBSERVE_QUEUE_H

#include <pthread.h>

#include "trace/trace.h"

#define QUEUE_BYTES   ((size_t)1 << 20)
#define QUEUE_RESERVE ((size_t)128 << 10) /* for violations; as much for what matters */
#define QUEUE_WAIT_MS 200                 /* how long such an event waits for room */

struct observe_queue {
	pthread_mutex_t lock;
	int wake;   /* eventfd: readable when the buffer has events */
	char *fill; /* being filled */
	size_t used;
	uint64_t dropped[ROOM_COUNT];
	uint64_t crowded[EV_COUNT]; /* violations that found no room, by kind */
	char *spare;                /* being emptied */
};

/* Returns -1 if there is no memory or no fd. */
int observe_queue_init(struct observe_queue *q);
void observe_queue_done(struct observe_queue *q);

/* Copies the event and everything that it points to. */
void observe_queue_put(struct observe_queue *q, const struct event *e);

/* Adds all queued events to the trace. */
void observe_queue_empty(struct observe_queue *q, struct trace *t);

#endif
