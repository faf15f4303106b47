/* seccomp_sim.h - executes a filter as the kernel would, with invented calls. */
#ifndef SECCOMP_SIM_H
#define SECCOMP_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_BROKEN 0xffffU /* the program is not valid; no action has this value */

/* Returns the action. Returns SIM_BROKEN for an unknown instruction, a jump out of the program, and
 * a load from outside of the data. */
uint32_t sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);

#endif
