/* landlock.h - Landlock rulesets at whatever ABI the kernel has. */
#ifndef OS_LANDLOCK_H
#define OS_LANDLOCK_H

#include <stdint.h>

/* What a rule allows beneath a path; translated to the ABI's own bits. */
enum landlock_may {
	LL_LIST = 1, /* read directories */
	LL_READ = 2, /* and files */
	LL_EXEC = 4,
	LL_WRITE = 8,    /* write, truncate, device ioctls */
	LL_CHANGE = 16,  /* make and remove files, directories, symlinks; rename */
	LL_SPECIAL = 32, /* make sockets and FIFOs */
};

int landlock_abi(void); /* 0: not available */

/* A ruleset that handles every right the ABI knows, and on ABI 6 isolates
 * abstract unix sockets and signals. Returns an owned fd, -1 with errno. */
int landlock_new(int abi);
/* A symlink needs no rule: what it leads to has its own. */
int landlock_allow(int ruleset_fd, int abi, int path_fd, unsigned may);
int landlock_enforce(int ruleset_fd); /* needs no_new_privs */

#endif
