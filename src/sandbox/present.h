/* present.h - which of the protected names (policy/protect.h) may exist in a directory. It
 * mostly has few of them, so one listing costs less than a look at each. */
#ifndef SANDBOX_PRESENT_H
#define SANDBOX_PRESENT_H

#include <stdbool.h>

#include "policy/protect.h"

struct present {
	bool name[PROTECTED_MAX]; /* indexed as PROTECTED */
};

/* Finds the names by their first part; in a `gitdir` (repos.h) without ".git/". All names
 * are reported if the directory's mode forbids listing it, or if it has more than
 * MAX_LISTED_NAMES entries or one that is not ASCII. `dir` is borrowed. Returns -1 with
 * errno for any other reason. */
int present_list(int dir, bool gitdir, struct present *ret);

#endif
