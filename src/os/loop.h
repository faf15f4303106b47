/* loop.h - an event loop for one thread: epoll, timers, and work that is deferred until the current
 * event is handled.
 *
 * A callback may call every function, for every watch and timer, even its own. A removed watch or
 * timer is never called again. */
#ifndef OS_LOOP_H
#define OS_LOOP_H

#include <stdint.h>

#include "skillsandbox.h"

struct loop;
struct loop_watch;
struct loop_timer;

typedef void loop_fd_fn(void *arg, uint32_t events); /* EPOLLIN, ... */
typedef void loop_fn(void *arg);

int loop_new(struct loop **ret, struct ssb_error *err);
void loop_free(struct loop *l); /* accepts NULL; also frees the remaining watches and timers */

/* Calls `fn` each time that one of `events` is ready. Returns 0, or -1 with errno. `fd` is
 * borrowed; the watch must be removed before it is closed. A regular file is always ready. */
int loop_watch(struct loop *l, int fd, uint32_t events, loop_fd_fn *fn, void *arg,
               struct loop_watch **ret);
void loop_rewatch(struct loop_watch *w, uint32_t events); /* 0: only hangups and errors */
void loop_unwatch(struct loop_watch **w); /* *w may be NULL, and is NULL afterwards */

/* Calls `fn` once, after `ms` milliseconds; with 0, after the current event is handled. *ret is set
 * to the timer, and to NULL just before the call of `fn`. So `ret` must stay valid until then: it
 * must not be a variable on the stack. `ret` may be NULL if the timer is never cancelled. Returns
 * 0, or -1 with errno. */
int loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret);
void loop_untimer(struct loop_timer **t); /* *t may be NULL, and is NULL afterwards */

/* Returns 0 after loop_stop(), or -1 with errno. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);

#endif
