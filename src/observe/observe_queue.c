/* observe_queue.c - the two buffers between the observer's thread and the trace. */
#include "observe/observe_queue.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

/* The header before each event in the buffer. */
struct queued {
	alignas(EVENT_ALIGN) size_t size; /* bytes of the header and the event */
};

int observe_queue_init(struct observe_queue *q)
{
	*q = (struct observe_queue){ .fill = malloc(QUEUE_BYTES),
		                     .spare = malloc(QUEUE_BYTES),
		                     .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	return q->fill == NULL || q->spare == NULL || q->wake < 0 ||
	                       pthread_mutex_init(&q->lock, NULL) != 0
	               ? -1
	               : 0;
}

void observe_queue_done(struct observe_queue *q)
{
	free(q->fill);
	free(q->spare);
	q->fill = q->spare = NULL;
	own_close(&q->wake);
}

/* Copies the event into the buffer. Returns false if there is no room now. */
static bool try_put(struct observe_queue *q, const struct event *e, size_t size, size_t reserved)
{
	(void)pthread_mutex_lock(&q->lock);
	bool fits = q->used + size <= QUEUE_BYTES - reserved;
	bool first = q->used == 0;
	if (fits) {
		struct queued *to = (struct queued *)(void *)(q->fill + q->used);
		to->size = size;
		(void)event_copy(to + 1, size - sizeof(*to), e);
		q->used += size;
	}
	(void)pthread_mutex_unlock(&q->lock);
	if (fits && first) {
		(void)!write(q->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
	}
	return fits;
}

void observe_queue_put(struct observe_queue *q, const struct event *e)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };
	enum room room = room_of(e, CLASS_NONE);
	bool matters = room_matters(room);
	size_t reserved = e->violation ? 0 : matters ? QUEUE_RESERVE : 2 * QUEUE_RESERVE;
	const size_t size = sizeof(struct queued) + event_size(e);

	assert((unsigned)e->kind < EV_COUNT);
	bool in = try_put(q, e, size, reserved);
	for (int i = 0; !in && matters && i < QUEUE_WAIT_MS; i++) {
		(void)nanosleep(&pause, NULL);
		in = try_put(q, e, size, reserved);
	}
	if (!in) {
		(void)pthread_mutex_lock(&q->lock);
		if (e->violation) {
			q->crowded[e->kind]++;
		} else {
			q->dropped[room]++;
		}
		(void)pthread_mutex_unlock(&q->lock);
	}
}

void observe_queue_empty(struct observe_queue *q, struct trace *t)
{
	uint64_t crowded[EV_COUNT];
	uint64_t dropped[ROOM_COUNT];
	uint64_t woken;

	(void)!read(q->wake, &woken, sizeof(woken));
	(void)pthread_mutex_lock(&q->lock);
	char *full = q->fill;
	size_t used = q->used;
	q->fill = q->spare;
	q->spare = full;
	q->used = 0;
	memcpy(dropped, q->dropped, sizeof(dropped));
	memset(q->dropped, 0, sizeof(q->dropped));
	memcpy(crowded, q->crowded, sizeof(crowded));
	memset(q->crowded, 0, sizeof(q->crowded));
	(void)pthread_mutex_unlock(&q->lock);

	for (size_t at = 0; at < used;) {
		const struct queued *next = (const struct queued *)(const void *)(full + at);
		trace_add(t, (const struct event *)(const void *)(next + 1));
		at += next->size;
	}
	for (int kind = 0; kind < EV_COUNT; kind++) {
		if (crowded[kind] > 0) {
			trace_not_listed(t, (enum event_kind)kind, true, crowded[kind], false);
		}
	}
	for (int room = 0; room < ROOM_COUNT; room++) {
		trace_dropped(t, (enum room)room, dropped[room]);
	}
}
