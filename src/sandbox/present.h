/* present.h - which of the protected names (policy/protect.h) can be in a directory. It has few of
 * them, as a rule: one listing costs less than a look at each. */
#ifndef SANDBOX_PRESENT_H
#define SANDBOX_PRESENT_H

#include <stdbool.h>

#include "policy/protect.h"

struct present {
	bool name[PROTECTED_MAX]; /* by its number in PROTECTED */
};

/* `dir` is borrowed. Names count by their first parts, and in a `gitdir` (repos.h) without ".git/".
 * Where the directory cannot be listed by its mode, or holds more than MAX_LISTED_NAMES or a name
 * that is not ASCII, all of them can be there. -1 with errno, for any other reason. */
int present_list(int dir, bool gitdir, struct present *ret);

#endif
