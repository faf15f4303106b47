/* caps.h - drops privileges irreversibly. */
#ifndef OS_CAPS_H
#define OS_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Clears the bounding and ambient sets, sets and locks the securebits, and keeps only the bits of
 * `keep` in the permitted and effective sets. All functions that return int return 0, or -1 with
 * errno. */
int caps_drop(uint64_t keep);

/* Only the first step of caps_drop(): clears the bounding and ambient sets. */
int caps_unbound(void);

/* The other steps of caps_drop(), after caps_unbound(). */
int caps_lock(uint64_t keep);

/* Only the last step of caps_drop(): sets the permitted and effective sets. */
int caps_set(uint64_t keep);

/* Like caps_set(), but drops the bits of `keep` that are not permitted now. */
int caps_keep(uint64_t keep);

/* True if all capability sets of the calling process are empty. The bounding set is checked only if
 * `bounding` is true: a process without privileges cannot empty it, and no_new_privs makes it
 * harmless. */
bool caps_none(bool bounding);

#endif
