/* seccomp_sim.h - executes a filter as the kernel would, for system calls that a test makes up. */
#ifndef SECCOMP_SIM_H
#define SECCOMP_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_BROKEN 0xffffU /* the filter is invalid; no action has this value */

/* Returns the filter's action for the call `data`. Returns SIM_BROKEN if the filter has an unknown
 * instruction, jumps out of itself, or loads from outside of `data`. */
uint32_t sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);

#endif
