/* meter.h - CPU time of a sandbox, measured from outside while it runs.
 *
 * If there is a control group, it counts the time; only init's own time must be added. Without a
 * group, the tree of processes beneath init is walked. The time of a process includes that of the
 * children that it has waited for, so a child that ends is still counted once. A child whose parent
 * does not wait for it (SIGCHLD ignored) would vanish from the sum, so the total never decreases.
 * The time that such a child uses after the last measurement is visible only to a control group. */
#ifndef SANDBOX_METER_H
#define SANDBOX_METER_H

#include <stdint.h>
#include <sys/types.h>

#include "os/cgroup.h"

struct meter {
	uint64_t us;   /* total at the last measurement; never decreases */
	uint64_t tree; /* sum of the last walk through the process tree */
};

/* Measures and updates `m`. `cg` may be NULL. */
void meter_look(struct meter *m, pid_t init, const struct cgroup *cg);

/* Must be called after init has ended and before it is reaped. Measures the total, which is exact
 * if init waited for all other processes. */
void meter_last(struct meter *m, pid_t init, const struct cgroup *cg);

/* Start time of a process in the kernel's ticks since boot; 0: the process is gone. */
uint64_t meter_started(pid_t pid);

/* The CPU time of `init` and all processes beneath it, in microseconds. */
uint64_t meter_tree(pid_t init);

#endif
