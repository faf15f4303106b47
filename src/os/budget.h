/* budget.h - a time limit for work that must end. There are two limits: one of CPU time, which a
 * busy machine does not shorten, and one of wall-clock time, because the work may wait for disks or
 * locks. */
#ifndef OS_BUDGET_H
#define OS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"

struct budget {
	uint64_t cpu_us;  /* CPU time at which the budget is used up */
	uint64_t wall_us; /* wall-clock time at which the budget is used up */
	uint64_t sure_us; /* until this wall-clock time, cpu_us cannot be reached */
};

static inline struct budget budget_new(unsigned cpu_ms, unsigned wall_ms)
{
	uint64_t now = clock_us();

	return (struct budget){ clock_cpu_us() + cpu_ms * UINT64_C(1000),
		                now + wall_ms * UINT64_C(1000), now + cpu_ms * UINT64_C(1000) };
}

/* Returns true if time is left. Reads the CPU time only when necessary, because reading it costs
 * about as much as the work between two calls. */
static inline bool budget_left(const struct budget *b)
{
	uint64_t now = clock_us();

	return now < b->wall_us && (now < b->sure_us || clock_cpu_us() < b->cpu_us);
}

#endif
