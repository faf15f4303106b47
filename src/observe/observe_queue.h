/* observe_queue.h - events on their way from the observer's thread to the
 * supervisor, which alone writes the trace.
 *
 * Two buffers of fixed size: one is filled while the other is emptied. What
 * does not fit is counted, not waited for: the skill would have to wait too. But
 * no flood pushes out what matters (room.h), nor that a violation: each has room of
 * its own, and waits. Where nobody empties the buffer for so long, it is counted, a
 * violation by its kind, which is a line. */
#ifndef OBSERVE_OBSERVE_QUEUE_H
#define OBSERVE_OBSERVE_QUEUE_H

#include <pthread.h>

#include "trace/trace.h"

#define QUEUE_BYTES   ((size_t)1 << 20)
#define QUEUE_RESERVE ((size_t)128 << 10) /* of them for violations; as much for what matters */
#define QUEUE_WAIT_MS 200                 /* that one of them waits for room */

struct observe_queue {
	pthread_mutex_t lock;
	int wake;   /* eventfd: readable since the buffer is no longer empty */
	char *fill; /* being filled */
	size_t used;
	uint64_t dropped[ROOM_COUNT];
	uint64_t crowded[EV_COUNT]; /* violations that found no room, by kind */
	char *spare;                /* being emptied */
};

/* -1: out of memory. */
int observe_queue_init(struct observe_queue *q);
void observe_queue_done(struct observe_queue *q);

/* Copies the event and everything that it points to. */
void observe_queue_put(struct observe_queue *q, const struct event *e);

/* Writes down what is there. */
void observe_queue_empty(struct observe_queue *q, struct trace *t);

#endif
