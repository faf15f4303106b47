/* budget.h - a time limit for work that must end. CPU time is limited, because other processes on a
 * busy machine do not shorten it; and wall-clock time, because the work may wait for disks or
 * locks. */
#ifndef OS_BUDGET_H
#define OS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"

struct budget {
	uint64_t cpu_us; /* the end, on either clock */
	uint64_t wall_us;
	uint64_t sure_us; /* before this the thread cannot have used that much CPU time */
};

static inline struct budget budget_new(unsigned cpu_ms, unsigned wall_ms)
{
	uint64_t now = clock_us();

	return (struct budget){ clock_cpu_us() + cpu_ms * UINT64_C(1000),
		                now + wall_ms * UINT64_C(1000), now + cpu_ms * UINT64_C(1000) };
}

/* Asking the kernel for the CPU time costs as much as a step of the work, so it is asked only when
 * necessary. */
static inline bool budget_left(const struct budget *b)
{
	uint64_t now = clock_us();

	return now < b->wall_us && (now < b->sure_us || clock_cpu_us() < b->cpu_us);
}

#endif
