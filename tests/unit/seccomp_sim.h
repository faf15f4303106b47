/* seccomp_sim.h - runs a filter as the kernel would, on made-up calls. */
#ifndef SECCOMP_SIM_H
#define SECCOMP_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_BROKEN 0xffffU /* no action has this value: the program is not valid */

/* The action, or SIM_BROKEN: an unknown instruction, a jump out of the
 * program, a load out of the data. */
uint32_t sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);

#endif
