/* seccomp_rules.h - the types of the system call tables.
 *
 * A call is decided by the first row of SECCOMP_RULES that has the call's name, belongs to the
 * filter, and has no false condition. If there is no such row, the group of this filter that
 * contains the name decides. If there is no such group either, the filter's default decides.
 *
 * Conditions compare only the low 32 bits of an argument. That is exact: the kernel takes each of
 * these arguments as int, unsigned int or umode_t, or as flags that are all in the low half (clone
 * takes lower_32_bits()). If all 64 bits were compared, a caller could evade a rule by setting bits
 * that the kernel ignores. */
#ifndef SECCOMP_RULES_H
#define SECCOMP_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/seccomp.h"

/* A row belongs to the filters of these profiles and reaches. The runtime's own init, broker,
 * dialler and maker count as further profiles. */
#define IN_DEFAULT    (1U << SECCOMP_PROFILE_DEFAULT)
#define IN_STRICT     (1U << SECCOMP_PROFILE_STRICT)
#define IN_PERMISSIVE (1U << SECCOMP_PROFILE_PERMISSIVE)
#define IN_INIT       (1U << SECCOMP_N_PROFILES)
#define IN_BROKER     (2U << SECCOMP_N_PROFILES)
#define IN_DIALLER    (4U << SECCOMP_N_PROFILES)
#define IN_MAKER      (8U << SECCOMP_N_PROFILES)
#define IN_ALL        (IN_DEFAULT | IN_STRICT | IN_PERMISSIVE)
#define IN_WIDE       (IN_DEFAULT | IN_PERMISSIVE) /* profiles with sockets and child processes */
#define IN_NARROW     (IN_DEFAULT | IN_STRICT)

#define TO_UNIX (1U << SECCOMP_REACH_UNIX)
#define TO_INET (1U << SECCOMP_REACH_INET)
#define TO_NONE (1U << SECCOMP_REACH_NONE)
#define TO_OWN  (TO_UNIX | TO_INET) /* the skill has its own namespaces */
#define TO_ANY  (TO_UNIX | TO_INET | TO_NONE)

#define SECCOMP_MAX_CONDS 3

/* Added to the index of an argument, to compare its upper half. Only for pointers, which are
 * compared with NULL. */
#define UPPER_HALF 8U

struct seccomp_cond {
	uint8_t arg;
	bool differs;  /* true: the condition is that the masked argument is not `value` */
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

/* Calls that may be newer than the libseccomp of the build machine. -1: not on this
 * architecture. */
struct seccomp_number {
	const char *name;
	int x86_64;
	int aarch64;
};

/* Calls that are reported to the observer even if they are allowed. A refusal by kill, EPERM,
 * EACCES, or for the kind of a socket is always reported. ENOSYS and the like mean "not available",
 * and programs try such calls all the time. */
extern const char SECCOMP_OBSERVED[];

extern const struct seccomp_rule SECCOMP_RULES[];
extern const size_t SECCOMP_N_RULES;
extern const struct seccomp_group SECCOMP_GROUPS[];
extern const size_t SECCOMP_N_GROUPS;
extern const struct seccomp_number SECCOMP_NUMBERS[];
extern const size_t SECCOMP_N_NUMBERS;

#endif
