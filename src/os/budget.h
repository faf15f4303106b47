/* budget.h - for work that has to end: in the processor's time, which others on a busy machine
 * do not shorten, and in all, where it waits for disks or locks. */
#ifndef OS_BUDGET_H
#define OS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"

struct budget {
	uint64_t cpu_us; /* until then, by either clock */
	uint64_t wall_us;
};

static inline struct budget budget_new(unsigned cpu_ms, unsigned wall_ms)
{
	return (struct budget){ clock_cpu_us() + cpu_ms * UINT64_C(1000),
		                clock_us() + wall_ms * UINT64_C(1000) };
}

static inline bool budget_left(const struct budget *b)
{
	return clock_cpu_us() < b->cpu_us && clock_us() < b->wall_us;
}

#endif
