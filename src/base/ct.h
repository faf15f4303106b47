/* ct.h - choosing without branching, for secrets. */
#ifndef BASE_CT_H
#define BASE_CT_H

#include <stdint.h>

/* All ones for 1, zero for 0. The empty assembly hides from the compiler that
 * there are only two values, or it may make a branch of what follows. That it
 * did not is checked on what was built, by tests/lint/constant-time. */
static inline uint64_t ct_mask(uint64_t flag)
{
	uint64_t mask = 0 - flag;

	__asm__("" : "+r"(mask));
	return mask;
}

#endif
