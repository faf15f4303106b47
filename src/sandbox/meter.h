/* meter.h - CPU time of a sandbox, measured from outside while it runs.
 *
 * The control group knows it, except for init's own time, which is added. Without a group,
 * the tree of processes beneath init is walked. In the tree a process includes the children
 * that it has waited for, so the sum counts a child once when it ends. A child whose parent
 * does not wait for it (SIGCHLD ignored) would vanish from the sum; its last known value is
 * kept. What such a child uses between two looks is visible only to a control group. */
#ifndef SANDBOX_METER_H
#define SANDBOX_METER_H

#include <stdint.h>
#include <sys/types.h>

#include "os/cgroup.h"

struct meter {
	uint64_t us;   /* as last measured; never decreases */
	uint64_t tree; /* the part that the last walk found */
};

/* Measures again. `cg` may be NULL. */
void meter_look(struct meter *m, pid_t init, const struct cgroup *cg);

/* Call it when init has ended and is not reaped yet: measures the exact total, if init
 * waited for all others. */
void meter_last(struct meter *m, pid_t init, const struct cgroup *cg);

/* Start time of a process in the kernel's ticks since boot; 0: it is gone. */
uint64_t meter_started(pid_t pid);

/* The CPU time of `init` and all processes beneath it, in microseconds. */
uint64_t meter_tree(pid_t init);

#endif
