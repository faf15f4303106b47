/* meter.h - CPU time of a sandbox, seen from outside while it runs.
 *
 * By its control group where that knows, to which init's own time is added;
 * else by a walk through the tree of processes beneath init. In the tree a
 * process carries those of its children that it has waited for, so that a
 * child's time goes up by one when it ends; what a parent lets go without
 * waiting (SIGCHLD ignored) would vanish from the sum, and is kept. What such
 * a child uses between two looks only a control group sees. */
#ifndef SANDBOX_METER_H
#define SANDBOX_METER_H

#include <stdint.h>
#include <sys/types.h>

#include "os/cgroup.h"

struct meter {
	uint64_t us;   /* as last seen; never less than before */
	uint64_t tree; /* of them: what the last walk found */
};

/* Looks again. `cg` may be NULL. */
void meter_look(struct meter *m, pid_t init, const struct cgroup *cg);

/* When init has ended and is not reaped yet: the whole, exactly, if it waited
 * for all others. */
void meter_last(struct meter *m, pid_t init, const struct cgroup *cg);

/* When a process was started, in the kernel's ticks since boot; 0: gone. */
uint64_t meter_started(pid_t pid);

/* The CPU time of `init` and all beneath it, in microseconds. */
uint64_t meter_tree(pid_t init);

#endif
