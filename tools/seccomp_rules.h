/* seccomp_rules.h - the words in which the system call tables are written.
 *
 * What happens to a call: the first row of SECCOMP_RULES that names it,
 * belongs to the filter and whose conditions all hold; else the one group that
 * names it for the filter; else the filter's default.
 *
 * Conditions look at the low 32 bits of an argument only. That is exact, not
 * a short cut: each argument in the tables is taken by the kernel as int,
 * unsigned int or umode_t, or is a set of flags that all lie in the low half
 * (clone takes lower_32_bits()). Comparing all 64 would let a caller slip past
 * by setting bits that the kernel drops. */
#ifndef SECCOMP_RULES_H
#define SECCOMP_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/seccomp.h"

/* Filters are chosen by two sets: profiles (with our own init, broker,
 * dialler and maker after them) and reaches. */
#define IN_DEFAULT    (1U << SECCOMP_PROFILE_DEFAULT)
#define IN_STRICT     (1U << SECCOMP_PROFILE_STRICT)
#define IN_PERMISSIVE (1U << SECCOMP_PROFILE_PERMISSIVE)
#define IN_INIT       (1U << SECCOMP_N_PROFILES)
#define IN_BROKER     (2U << SECCOMP_N_PROFILES)
#define IN_DIALLER    (4U << SECCOMP_N_PROFILES)
#define IN_MAKER      (8U << SECCOMP_N_PROFILES)
#define IN_ALL        (IN_DEFAULT | IN_STRICT | IN_PERMISSIVE)
#define IN_WIDE       (IN_DEFAULT | IN_PERMISSIVE) /* those with sockets and children */
#define IN_NARROW     (IN_DEFAULT | IN_STRICT)

#define TO_UNIX (1U << SECCOMP_REACH_UNIX)
#define TO_INET (1U << SECCOMP_REACH_INET)
#define TO_NONE (1U << SECCOMP_REACH_NONE)
#define TO_OWN  (TO_UNIX | TO_INET) /* in namespaces of its own */
#define TO_ANY  (TO_UNIX | TO_INET | TO_NONE)

#define SECCOMP_MAX_CONDS 3

/* With an argument's index: its upper half. For pointers, of which only "is it
 * NULL" is asked. */
#define UPPER_HALF 8U

struct seccomp_cond {
	uint8_t arg;
	bool differs;  /* holds when the masked argument is not `value` */
	uint32_t mask; /* 0: no condition */
	uint32_t value;
};

struct seccomp_rule {
	const char *name;
	unsigned profiles;
	unsigned reaches;
	uint32_t action; /* SECCOMP_RET_* */
	struct seccomp_cond cond[SECCOMP_MAX_CONDS];
};

struct seccomp_group {
	unsigned profiles;
	unsigned reaches;
	uint32_t action;
	const char *names; /* separated by spaces */
};

/* Calls that may be younger than the build machine's libseccomp. -1: not on
 * this architecture. */
struct seccomp_number {
	const char *name;
	int x86_64;
	int aarch64;
};

/* Allowed calls that the observer is told of. So is it of each refusal that is
 * one: a kill, EPERM, EACCES, a socket of another kind. ENOSYS and the like say
 * "not there", which programs ask every day. */
extern const char SECCOMP_OBSERVED[];

extern const struct seccomp_rule SECCOMP_RULES[];
extern const size_t SECCOMP_N_RULES;
extern const struct seccomp_group SECCOMP_GROUPS[];
extern const size_t SECCOMP_N_GROUPS;
extern const struct seccomp_number SECCOMP_NUMBERS[];
extern const size_t SECCOMP_N_NUMBERS;

#endif
