/* seccomp_compile.h - compiles the tables to BPF, and writes them as text. */
#ifndef SECCOMP_COMPILE_H
#define SECCOMP_COMPILE_H

#include <linux/filter.h>
#include <stdio.h>

#include "seccomp_rules.h"

struct seccomp_arch {
	const char *name; /* the name in Meson's cpu_family() */
	uint32_t audit;   /* AUDIT_ARCH_*, which the kernel puts into seccomp_data.arch */
	bool x32;         /* calls from X32_BIT on are those of the x32 ABI */
};

#define SECCOMP_X32_BIT 0x40000000U

extern const struct seccomp_arch SECCOMP_ARCHES[];
extern const size_t SECCOMP_N_ARCHES;
const struct seccomp_arch *seccomp_arch_find(const char *name); /* NULL: not supported */

/* Selects one filter: one bit of the profiles and one bit of the reaches. */
struct seccomp_which {
	unsigned profile;
	unsigned reach;
	bool observed; /* the same decisions, but some calls are reported to the supervisor first */
};

#define SECCOMP_MAX_PER_CALL 40
#define SECCOMP_MAX_CALLS    512

/* The decision of one filter about one call: the first rule that matches, otherwise `action`. */
struct seccomp_call {
	const char *name;
	uint32_t nr;
	uint32_t action;
	bool told; /* reported to the observer even if it is allowed */
	size_t n_rules;
	const struct seccomp_rule *rules[SECCOMP_MAX_PER_CALL];
};

struct seccomp_policy {
	bool observed;
	uint32_t fallback; /* the action for calls that are not listed */
	size_t n_calls;
	struct seccomp_call calls[SECCOMP_MAX_CALLS]; /* sorted by number */
};

/* Returns the number of a call; -1: not on this architecture, -2: unknown name. */
int seccomp_number(const struct seccomp_arch *arch, const char *name);

/* Writes the name of the call `nr`; "" if it is unknown. */
void seccomp_name(const struct seccomp_arch *arch, int nr, char *out, size_t size);

/* Both functions return 0. If the tables are wrong, they write a line to stderr and return -1. */
int seccomp_resolve(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct seccomp_policy *ret_policy);
int seccomp_compile(const struct seccomp_arch *arch, struct seccomp_which which,
                    struct sock_filter ret_insns[BPF_MAXINSNS], size_t *ret_n);

/* Writes one line for each call and decision, then the size and checksum of each filter. */
int seccomp_dump(const struct seccomp_arch *arch, FILE *out);

#endif
