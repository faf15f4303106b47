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
	uint64_t sure_us; /* until then nobody can have had so much of the processor */
};

static inline struct budget budget_new(unsigned cpu_ms, unsigned wall_ms)
{
	uint64_t now = clock_us();

	return (struct budget){ clock_cpu_us() + cpu_ms * UINT64_C(1000),
		                now + wall_ms * UINT64_C(1000), now + cpu_ms * UINT64_C(1000) };
}

/* The processor's time is asked of the kernel, which costs as much as a step of the work. */
static inline bool budget_left(const struct budget *b)
{
	uint64_t now = clock_us();

	return now < b->wall_us && (now < b->sure_us || clock_cpu_us() < b->cpu_us);
}

#endif
