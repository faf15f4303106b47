/* present.h - which of the protected names (policy/protect.h) may exist in a directory. Most
 * directories contain few of them, so one listing costs less than a system call for each name. */
#ifndef SANDBOX_PRESENT_H
#define SANDBOX_PRESENT_H

#include <stdbool.h>

#include "policy/protect.h"

struct present {
	bool name[PROTECTED_MAX]; /* indexed like PROTECTED */
};

/* Sets ret->name[i] for each protected name whose first component exists in `dir` (borrowed). If
 * `gitdir` (repos.h), the names are used without ".git/". Sets it for all names if the directory's
 * mode forbids listing it, if it has more than MAX_LISTED_NAMES entries, or if the name of an entry
 * is not ASCII. Returns 0, or -1 with errno for any other failure. */
int present_list(int dir, bool gitdir, struct present *ret);

#endif
