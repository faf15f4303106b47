/* caps.h - giving up privilege for good. */
#ifndef OS_CAPS_H
#define OS_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Clears the bounding and ambient sets, sets and locks the securebits, and
 * keeps in permitted and effective only the bits of `keep`. -1 with errno. */
int caps_drop(uint64_t keep);

/* The first of it alone: bounding and ambient. -1 with errno. */
int caps_unbound(void);

/* What comes after it. -1 with errno. */
int caps_lock(uint64_t keep);

/* The last of it alone: permitted and effective. -1 with errno. */
int caps_set(uint64_t keep);

/* The same, of those that there are: never asks for more. -1 with errno. */
int caps_keep(uint64_t keep);

/* No set of the calling process has any; the bounding set, which nobody
 * without privilege can empty and which no_new_privs makes harmless, is asked
 * with `bounding`. */
bool caps_none(bool bounding);

#endif
