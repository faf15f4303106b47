/* race.h - connects to the first of several addresses that answers. */
#ifndef EGRESS_RACE_H
#define EGRESS_RACE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "egress/guard.h"

#define RACE_STAGGER_MS 250 /* wait before the next address is tried in parallel */

struct race_target {
	struct address address;
	uint32_t scope; /* index of the interface for a link-local address, else 0 */
};

int64_t race_now_us(void); /* current time, on the clock of the deadlines */

/* Reorders the targets so that the address families alternate, beginning with the family of the
 * first target. Within a family, the order stays. `n` must not exceed MAX_DIAL_ADDRESSES. */
void race_interleave(struct race_target *targets, size_t n);

/* Parallel attempts to connect. Refers to no memory of the caller, so it may be passed to another
 * thread. */
struct race {
	struct race_target targets[MAX_DIAL_ADDRESSES];
	size_t n;
	uint16_t port;
	int type;
	size_t started;                        /* targets[0..started) were tried */
	int64_t next_us;                       /* when the next attempt starts */
	struct pollfd fds[MAX_DIAL_ADDRESSES]; /* fd -1: this attempt has failed */
	size_t running;
	int last_errno;
};

/* Prepares a race, but tries nothing yet. `type` is SOCK_STREAM or SOCK_DGRAM; `n` must be 1 to
 * MAX_DIAL_ADDRESSES. */
void race_init(struct race *r, const struct race_target *targets, size_t n, uint16_t port,
               int type);

/* Returns a new TCP socket that is aimed at the first target but not connected: nothing leaves the
 * machine before the first send on it, which may be empty. Its destination cannot be changed
 * afterwards. `speaks` means that the caller will send bytes as soon as the socket is connected.
 * Returns -1 with errno if this system does not support it. */
int race_aim(const struct race *r, bool speaks);

/* Tries the first target without waiting. Returns its socket, as race_finish() does, if it is
 * connected at once. Returns -1 if it is not; then the caller may call race_finish(). */
int race_at_once(struct race *r);

/* Runs the race. Returns a new connected socket (non-blocking, CLOEXEC), or -1 with errno:
 * ETIMEDOUT after the deadline, otherwise the errno of the last failure. Closes all other attempts.
 * *tried is the index of the target that was connected, or else of the last one that was tried. */
int race_finish(struct race *r, int64_t deadline_us, size_t *tried);

void race_done(struct race *r); /* closes the attempts of a race that was not finished */

/* Calls race_init() and race_finish(). */
int race_connect(const struct race_target *targets, size_t n, uint16_t port, int type,
                 int64_t deadline_us, size_t *tried);

#endif
