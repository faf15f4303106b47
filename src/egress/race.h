/* race.h - connects to the first of several addresses that answers. */
#ifndef EGRESS_RACE_H
#define EGRESS_RACE_H

#include <stddef.h>
#include <stdint.h>

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

/* Returns a connected socket (non-blocking, CLOEXEC; `type` is SOCK_STREAM or
 * SOCK_DGRAM), or -1 with errno: ETIMEDOUT past the deadline, otherwise that of
 * the last failure. Every other attempt is closed. *tried is the index of the
 * target connected to, or of the last one tried. n: 1 to MAX_DIAL_ADDRESSES. */
int race_connect(const struct race_target *targets, size_t n, uint16_t port, int type,
                 int64_t deadline_us, size_t *tried);

#endif
