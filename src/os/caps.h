/* caps.h - giving up privilege for good. */
#ifndef OS_CAPS_H
#define OS_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Clears the bounding and ambient sets, sets and locks the securebits, and
 * keeps in permitted and effective only the bits of `keep`. -1 with errno. */
int caps_drop(uint64_t keep);

bool caps_none(void); /* all five sets of the calling process are empty */

#endif
