/* loop.h - one thread, many fds: epoll, timers, and what is put off until the
 * present event is dealt with. No policy.
 *
 * Everything may be called from inside of a callback, on every watch and timer,
 * the one that is being called included: what was let go is never called again. */
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
void loop_free(struct loop *l); /* accepts NULL; watches and timers that are left with it */

/* `fd` is borrowed, and must be let go before it is closed. A regular file is always
 * ready. -1 with errno. */
int loop_watch(struct loop *l, int fd, uint32_t events, loop_fd_fn *fn, void *arg,
               struct loop_watch **ret);
void loop_rewatch(struct loop_watch *w, uint32_t events); /* 0: hangs up and errors only */
void loop_unwatch(struct loop_watch **w);                 /* accepts NULL in it; NULL after it */

/* Once, after so many milliseconds; 0: when what is happening now is dealt with. Just
 * before `fn` is called *ret becomes NULL: so it must be the place where the timer is
 * kept (it does not move), not a variable on the stack. `ret` NULL: it is never taken
 * back. -1 with errno. */
int loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret);
void loop_untimer(struct loop_timer **t); /* accepts NULL in it; NULL after it */

/* 0 when loop_stop() was called; -1 with errno. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);

#endif
