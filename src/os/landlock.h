/* landlock.h - makes Landlock rulesets, for every ABI. */
#ifndef OS_LANDLOCK_H
#define OS_LANDLOCK_H

#include <stdint.h>

/* The accesses that a rule can allow beneath a path. landlock_allow() translates them to the rights
 * of the ABI. */
enum landlock_may {
	LL_LIST = 1, /* read directories */
	LL_READ = 2, /* read directories and files */
	LL_EXEC = 4,
	LL_WRITE = 8,    /* write, truncate, device ioctls */
	LL_CHANGE = 16,  /* make and remove files, directories, symlinks; rename */
	LL_SPECIAL = 32, /* make sockets and FIFOs */
};

int landlock_abi(void); /* 0: Landlock is not available */

/* Makes a ruleset that restricts every right of the ABI and, on ABI 6, isolates abstract unix
 * sockets and signals. Returns an owned fd, or -1 with errno. */
int landlock_new(int abi);
/* Adds a rule that allows `may` (LL_*) beneath path_fd. Returns 0, or -1 with errno. If path_fd is
 * a symlink, does nothing: only the target of a symlink needs a rule. */
int landlock_allow(int ruleset_fd, int abi, int path_fd, unsigned may);
int landlock_enforce(int ruleset_fd); /* needs no_new_privs */

#endif
