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
	uint32_t scope; /* the interface, of link-local addresses */
};

int64_t race_now_us(void); /* the clock of deadlines */

/* Alternates the families, beginning with that of the first target; otherwise
 * the order stays. At most MAX_DIAL_ADDRESSES. */
void race_interleave(struct race_target *targets, size_t n);

/* Some attempts side by side. An own copy of everything: it may be handed on. */
struct race {
	struct race_target targets[MAX_DIAL_ADDRESSES];
	size_t n;
	uint16_t port;
	int type;
	size_t started;                        /* targets[0..started) were tried */
	int64_t next_us;                       /* when the next one starts */
	struct pollfd fds[MAX_DIAL_ADDRESSES]; /* fd -1: failed */
	size_t running;
	int last_errno;
};

/* `type` is SOCK_STREAM or SOCK_DGRAM; n: 1 to MAX_DIAL_ADDRESSES. Nothing is
 * tried yet. */
void race_init(struct race *r, const struct race_target *targets, size_t n, uint16_t port,
               int type);

/* A TCP socket for the first target that is not connected yet: nothing leaves
 * before something, or nothing, is sent on it for the first time. Where it then
 * leads is settled. With `speaks`, bytes will follow at once when it is connected.
 * -1 with errno: not on this system. */
int race_aim(const struct race *r, bool speaks);

/* Tries the first target and does not wait: returns its socket, as race_finish()
 * does, where it is connected at once; -1: not yet, and the race goes on. */
int race_at_once(struct race *r);

/* Returns a connected socket (non-blocking, CLOEXEC), or -1 with errno: ETIMEDOUT
 * past the deadline, otherwise that of the last failure. Every other attempt is
 * closed. *tried is the index of the target connected to, or of the last one
 * tried. */
int race_finish(struct race *r, int64_t deadline_us, size_t *tried);

void race_done(struct race *r); /* for a race that nobody finishes */

/* All of it, from the beginning. */
int race_connect(const struct race_target *targets, size_t n, uint16_t port, int type,
                 int64_t deadline_us, size_t *tried);

#endif
