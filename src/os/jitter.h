/* jitter.h - a random delay, so that clients that failed together do not retry together. */
#ifndef OS_JITTER_H
#define OS_JITTER_H

#include <sys/random.h>

#include "os/clock.h"

/* Returns 50 % to 150 % of `ms`. */
static inline uint64_t jitter_ms(uint64_t ms)
{
	uint32_t r = 0;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r)) {
		r = (uint32_t)clock_us();
	}
	return ms / 2 + r % (ms + 1);
}

#endif
