/* loop.c - the event loop.
 *
 * One turn waits until an fd is ready or the next timer is due. It calls the callbacks of the ready
 * fds, and then those of the timers that are due.
 *
 * A watch that is removed during a turn is not freed until the turn is over, because the kernel's
 * list of events may still refer to it. A timer that is set during a turn is called in the next
 * turn at the earliest, so that a timer that sets itself again cannot starve the fds. */
#include "os/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"

#define TURN_EVENTS 64

struct loop_watch {
	struct loop *loop;
	struct loop_watch *prev, *next;
	int fd;
	uint32_t events;
	bool file; /* the fd is of a type that epoll refuses, and is always ready */
	bool gone;
	loop_fd_fn *fn;
	void *arg;
};

struct loop_timer {
	struct loop *loop;
	struct loop_timer **home; /* the caller's pointer to this timer; NULL: none */
	uint64_t due;             /* clock_ms() at which it is called */
	uint64_t number;          /* among timers with equal times the lowest number is first */
	size_t place;             /* its index in the heap */
	loop_fn *fn;
	void *arg;
};

struct loop {
	int epoll;
	bool stop;
	size_t n_files; /* watches that are always ready */
	struct loop_watch *watches;
	struct loop_watch *shells; /* watches that were removed in this turn */
	struct loop_timer **heap;  /* the earliest timer first */
	size_t n_timers;
	size_t room;
	uint64_t number;
};

int loop_new(struct loop **ret, struct ssb_error *err)
{
	struct loop *l = calloc(1, sizeof *l);

	if (l == NULL) {
		return ssb_fail(err, SSB_E_SYS, ENOMEM, "loop", "cannot make an event loop");
	}
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		(void)ssb_fail(err, SSB_E_SYS, errno, "loop", "epoll_create1");
		free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

static void free_watches(struct loop_watch **list)
{
	while (*list != NULL) {
		struct loop_watch *w = *list;
		*list = w->next;
		free(w);
	}
}

void loop_free(struct loop *l)
{
	if (l == NULL) {
		return;
	}
	free_watches(&l->watches);
	free_watches(&l->shells);
	for (size_t i = 0; i < l->n_timers; i++) {
		free(l->heap[i]);
	}
	free(l->heap);
	own_close(&l->epoll);
	free(l);
}

/* ---- fds -------------------------------------------------------------------- */

int loop_watch(struct loop *l, int fd, uint32_t events, loop_fd_fn *fn, void *arg,
               struct loop_watch **ret)
{
	auto_free struct loop_watch *w = calloc(1, sizeof *w);

	assert(fn != NULL && ret != NULL);
	if (w == NULL) {
		errno = ENOMEM;
		return -1;
	}
	*w = (struct loop_watch){
		.loop = l, .fd = fd, .events = events, .fn = fn, .arg = arg, .next = l->watches
	};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd,
	              &(struct epoll_event){ .events = events, .data.ptr = w }) < 0) {
		if (errno != EPERM) {
			return -1;
		}
		w->file = true;
		l->n_files++;
	}
	if (l->watches != NULL) {
		l->watches->prev = w;
	}
	l->watches = w;
	*ret = steal_ptr(&w);
	return 0;
}

void loop_rewatch(struct loop_watch *w, uint32_t events)
{
	if (w->events == events) {
		return;
	}
	w->events = events;
	if (!w->file) {
		/* This call cannot fail: it needs no memory, and the fd is being watched. */
		(void)epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd,
		                &(struct epoll_event){ .events = events, .data.ptr = w });
	}
}

void loop_unwatch(struct loop_watch **wp)
{
	struct loop_watch *w = steal_ptr(wp);

	if (w == NULL) {
		return;
	}
	struct loop *l = w->loop;

	if (w->file) {
		l->n_files--;
	} else {
		(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	}
	if (w->prev != NULL) {
		w->prev->next = w->next;
	} else {
		l->watches = w->next;
	}
	if (w->next != NULL) {
		w->next->prev = w->prev;
	}
	w->gone = true;
	w->next = l->shells;
	l->shells = w;
}

/* ---- timers: a heap ---------------------------------------------------------- */

static bool is_earlier(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void put_timer(struct loop *l, size_t place, struct loop_timer *t)
{
	l->heap[place] = t;
	t->place = place;
}

static void sift_up(struct loop *l, struct loop_timer *t)
{
	size_t at = t->place;

	for (; at > 0 && is_earlier(t, l->heap[(at - 1) / 2]); at = (at - 1) / 2) {
		put_timer(l, at, l->heap[(at - 1) / 2]);
	}
	put_timer(l, at, t);
}

static void sift_down(struct loop *l, struct loop_timer *t)
{
	size_t at = t->place;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < l->n_timers && is_earlier(l->heap[child + 1], l->heap[child])) {
			child++;
		}
		if (child >= l->n_timers || !is_earlier(l->heap[child], t)) {
			break;
		}
		put_timer(l, at, l->heap[child]);
		at = child;
	}
	put_timer(l, at, t);
}

static void heap_take(struct loop *l, struct loop_timer *t)
{
	struct loop_timer *last = l->heap[--l->n_timers];

	if (last != t) {
		put_timer(l, t->place, last);
		sift_up(l, last);
		sift_down(l, last);
	}
}

static int heap_room(struct loop *l)
{
	if (l->n_timers < l->room) {
		return 0;
	}
	size_t room = l->room == 0 ? 16 : l->room * 2;
	struct loop_timer **heap = reallocarray(l->heap, room, sizeof(void *));

	if (heap == NULL) {
		return -1;
	}
	l->heap = heap;
	l->room = room;
	return 0;
}

int loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret)
{
	struct loop_timer *t = heap_room(l) < 0 ? NULL : malloc(sizeof *t);

	assert(fn != NULL);
	if (t == NULL) {
		errno = ENOMEM;
		return -1;
	}
	uint64_t now = clock_ms();

	*t = (struct loop_timer){ .loop = l,
		                  .home = ret,
		                  .due = ms > UINT64_MAX - now ? UINT64_MAX : now + ms,
		                  .number = l->number++,
		                  .place = l->n_timers++,
		                  .fn = fn,
		                  .arg = arg };
	sift_up(l, t);
	if (ret != NULL) {
		*ret = t;
	}
	return 0;
}

void loop_untimer(struct loop_timer **tp)
{
	struct loop_timer *t = steal_ptr(tp);

	if (t != NULL) {
		heap_take(t->loop, t);
		free(t);
	}
}

/* ---- turns ------------------------------------------------------------------- */

static int wait_ms(const struct loop *l)
{
	for (const struct loop_watch *w = l->n_files > 0 ? l->watches : NULL; w; w = w->next) {
		if (w->file && w->events != 0) {
			return 0;
		}
	}
	if (l->n_timers == 0) {
		return -1;
	}
	uint64_t now = clock_ms(), due = l->heap[0]->due;

	return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

static void call_fds(struct loop *l, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n && !l->stop; i++) {
		struct loop_watch *w = events[i].data.ptr;
		if (!w->gone) {
			w->fn(w->arg, events[i].events);
		}
	}
}

/* Calls the callbacks of fds that are always ready. A callback may remove any watch, so the ready
 * watches are noted first. */
static void call_files(struct loop *l)
{
	struct loop_watch *ready[TURN_EVENTS];
	size_t n = 0;

	for (struct loop_watch *w = l->watches; w != NULL && n < TURN_EVENTS; w = w->next) {
		if (w->file && w->events != 0) {
			ready[n++] = w;
		}
	}
	for (size_t i = 0; i < n && !l->stop; i++) {
		uint32_t events = ready[i]->events & (EPOLLIN | EPOLLOUT);
		if (!ready[i]->gone && events != 0) {
			ready[i]->fn(ready[i]->arg, events);
		}
	}
}

static void call_timers(struct loop *l, uint64_t before)
{
	uint64_t now = clock_ms();

	while (!l->stop && l->n_timers > 0) {
		struct loop_timer *t = l->heap[0];
		if (t->due > now || t->number >= before) {
			return;
		}
		loop_fn *fn = t->fn;
		void *arg = t->arg;

		heap_take(l, t);
		if (t->home != NULL) {
			*t->home = NULL;
		}
		free(t);
		fn(arg);
	}
}

int loop_run(struct loop *l)
{
	while (!l->stop) {
		struct epoll_event events[TURN_EVENTS];
		int n = epoll_wait(l->epoll, events, TURN_EVENTS, wait_ms(l));

		if (n < 0 && errno != EINTR) {
			return -1;
		}
		uint64_t before = l->number;

		call_fds(l, events, n);
		if (l->n_files > 0) {
			call_files(l);
		}
		call_timers(l, before);
		free_watches(&l->shells);
	}
	l->stop = false; /* so that the loop can be run again */
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
