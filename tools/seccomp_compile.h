/* seccomp_compile.h - from the tables to BPF, and to text for people. */
#ifndef SECCOMP_COMPILE_H
#define SECCOMP_COMPILE_H

#include <linux/filter.h>
#include <stdio.h>

#include "seccomp_rules.h"

struct seccomp_arch {
	const char *name; /* as Meson's cpu_family() */
	uint32_t audit;   /* AUDIT_ARCH_*: what the kernel puts into seccomp_data.arch */
	bool x32;         /* numbers from X32_BIT on are a second table of calls */
};

#define SECCOMP_X32_BIT 0x40000000U

extern const struct seccomp_arch SECCOMP_ARCHES[];
extern const size_t SECCOMP_N_ARCHES;
const struct seccomp_arch *seccomp_arch_find(const char *name); /* NULL: not ours */

/* One filter: a bit of `profiles` and a bit of `reaches`. */
struct seccomp_which {
	unsigned profile;
	unsigned reach;
	bool observed; /* the same decisions, but the supervisor is asked where it wants to know */
};

#define SECCOMP_MAX_PER_CALL 40
#define SECCOMP_MAX_CALLS    512

/* What one filter does with one call: the rules in order, then `action`. */
struct seccomp_call {
	const char *name;
	uint32_t nr;
	uint32_t action;
	bool told; /* to the observer, where it is allowed */
	size_t n_rules;
	const struct seccomp_rule *rules[SECCOMP_MAX_PER_CALL];
};

struct seccomp_policy {
	bool observed;
	uint32_t fallback; /* the action for calls that are not listed */
	size_t n_calls;
	struct seccomp_call calls[SECCOMP_MAX_CALLS]; /* by number */
};

/* The number of a call; -1: not on this architecture, -2: no such call. */
int seccomp_number(const struct seccomp_arch *arch, const char *name);

/* The other way round; "" where there is none. */
void seccomp_name(const struct seccomp_arch *arch, int nr, char *out, size_t size);

/* All return 0, or -1 after a line on stderr: the tables are at fault. */
int seccomp_resolve(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct seccomp_policy *ret_policy);
int seccomp_compile(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct sock_filter ret_insns[BPF_MAXINSNS], size_t *ret_n);

/* One line per call and decision, then the size and checksum of each filter. */
int seccomp_dump(const struct seccomp_arch *arch, FILE *out);

#endif
