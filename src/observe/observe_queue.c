#include "observe/observe_queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

/* An event as it lies in the buffer. What follows: the lengths of the
 * arguments and `more`, which are aligned; then the bytes of FIELDS, name,
 * remedy, address, the arguments. Other texts of an event last as long as the run. */
struct packed {
	size_t size; /* of all of it */
	struct event e;
	size_t name; /* lengths with NUL; 0: none */
	size_t remedy;
	size_t address;
};

static const size_t FIELDS[] = {
	offsetof(struct event, message),   offsetof(struct event, program),
	offsetof(struct event, path),      offsetof(struct event, path2),
	offsetof(struct event, raw),       offsetof(struct event, leads_to),
	offsetof(struct event, attribute),
};

static struct bytes *field(struct event *e, size_t at)
{
	return (struct bytes *)(void *)((char *)e + at);
}

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

static char *add(char *to, const void *data, size_t n)
{
	if (n > 0) {
		memcpy(to, data, n);
	}
	return to + n;
}

static size_t text_size(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

static size_t aligned(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

static void pack(struct packed *p, const struct event *e)
{
	p->e = *e;
	if (e->n_args > QUEUE_ARGS) {
		p->e.n_args = QUEUE_ARGS;
		p->e.args_cut = true;
	}
	p->name = text_size(e->name);
	p->remedy = text_size(e->remedy);
	p->address = text_size(e->address);
	p->size = sizeof(*p) + p->e.n_args * sizeof(size_t) + p->name + p->remedy + p->address +
	          aligned(e->more_size);
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
		p->size += field(&p->e, FIELDS[i])->n;
	}
	for (size_t i = 0; i < p->e.n_args; i++) {
		p->size += e->args[i].n;
	}
	p->size = aligned(p->size);
}

static void put_bytes(char *to, const struct packed *p, const struct event *e)
{
	to = add(to, p, sizeof(*p));
	for (size_t i = 0; i < p->e.n_args; i++) {
		to = add(to, &e->args[i].n, sizeof(size_t));
	}
	(void)add(to, e->more_arg, e->more_size);
	to += aligned(e->more_size);
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
		const struct bytes *b =
		        (const struct bytes *)(const void *)((const char *)e + FIELDS[i]);
		to = add(to, b->p, b->n);
	}
	to = add(to, e->name, p->name);
	to = add(to, e->remedy, p->remedy);
	to = add(to, e->address, p->address);
	for (size_t i = 0; i < p->e.n_args; i++) {
		to = add(to, e->args[i].p, e->args[i].n);
	}
}

/* False: there is no room now. */
static bool put(struct observe_queue *q, const struct packed *p, const struct event *e,
                size_t reserved)
{
	(void)pthread_mutex_lock(&q->lock);
	bool fits = q->used + p->size <= QUEUE_BYTES - reserved;
	bool first = q->used == 0;
	if (fits) {
		put_bytes(q->fill + q->used, p, e);
		q->used += p->size;
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
	enum room room = e->violation ? ROOM_VIOLATION : room_of(e, NULL);
	bool matters = room_matters(room);
	size_t reserved = e->violation ? 0 : matters ? QUEUE_RESERVE : 2 * QUEUE_RESERVE;
	struct packed p;

	pack(&p, e);
	bool in = put(q, &p, e, reserved);
	for (int i = 0; !in && matters && i < QUEUE_WAIT_MS; i++) {
		(void)nanosleep(&pause, NULL);
		in = put(q, &p, e, reserved);
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

static const char *take(char **at, size_t n)
{
	const char *p = n > 0 ? *at : NULL;

	*at += n;
	return p;
}

/* Puts the pointers back. */
static void write_down(char *at, struct trace *t)
{
	struct packed *p = (struct packed *)(void *)at;
	struct bytes args[QUEUE_ARGS];
	struct event *e = &p->e;

	at += sizeof(*p);
	const size_t *lengths = (const size_t *)(const void *)at;
	at += e->n_args * sizeof(size_t);
	if (e->more_size > 0) {
		e->more_arg = at;
		at += aligned(e->more_size);
	}
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
		struct bytes *b = field(e, FIELDS[i]);
		b->p = b->p != NULL && b->n == 0 ? "" : take(&at, b->n);
	}
	e->name = take(&at, p->name);
	e->remedy = take(&at, p->remedy);
	e->address = take(&at, p->address);
	for (size_t i = 0; i < e->n_args; i++) {
		args[i] = (struct bytes){ at, lengths[i] };
		at += lengths[i];
	}
	e->args = e->n_args > 0 ? args : NULL;
	trace_add(t, e);
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
		size_t size = ((const struct packed *)(const void *)(full + at))->size;
		write_down(full + at, t);
		at += size;
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
