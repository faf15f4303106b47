/* race.h - connects to the first of several addresses that answers. */
#ifndef EGRESS_RACE_H
#define EGRESS_RACE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "egress/guard.h"

#define RACE_STAGGER_MS 250 /* before the next address is tried beside the last */

struct race_target {
	struct address address;
	uint32_t scope; /* interface of a link-local address, else 0 */
};

int64_t race_now_us(void); /* the clock of deadlines */

/* Alternates the address families, beginning with that of the first target; otherwise the order
 * stays. `n` must not exceed MAX_DIAL_ADDRESSES. */
void race_interleave(struct race_target *targets, size_t n);

/* Attempts side by side. Holds a copy of everything, so it may be passed to another thread. */
struct race {
	struct race_target targets[MAX_DIAL_ADDRESSES];
	size_t n;
	uint16_t port;
	int type;
	size_t started;                        /* targets[0..started) were tried */
	int64_t next_us;                       /* when the next attempt starts */
	struct pollfd fds[MAX_DIAL_ADDRESSES]; /* fd -1: failed */
	size_t running;
	int last_errno;
};

/* Prepares a race and tries nothing yet. `type` is SOCK_STREAM or SOCK_DGRAM; `n` must be 1 to
 * MAX_DIAL_ADDRESSES. */
void race_init(struct race *r, const struct race_target *targets, size_t n, uint16_t port,
               int type);

/* Returns a new TCP socket that is aimed at the first target and not connected: nothing leaves
 * the machine before the first send on it, which may be empty. Where it then leads cannot be
 * changed. With `speaks`, the caller will send bytes as soon as it is connected. Returns -1 with
 * errno if this system cannot do it. */
int race_aim(const struct race *r, bool speaks);

/* Tries the first target without waiting. Returns its socket, as race_finish() does, if it is
 * connected at once; -1: not yet, and the race can be finished. */
int race_at_once(struct race *r);

/* Returns a new connected socket (non-blocking, CLOEXEC), or -1 with errno: ETIMEDOUT past the
 * deadline, otherwise that of the last failure. Closes every other attempt. *tried is the index
 * of the target that was connected to, or of the last one that was tried. */
int race_finish(struct race *r, int64_t deadline_us, size_t *tried);

void race_done(struct race *r); /* closes the attempts of a race that is not finished */

/* race_init() and race_finish() in one. */
int race_connect(const struct race_target *targets, size_t n, uint16_t port, int type,
                 int64_t deadline_us, size_t *tried);

#endif
