/* ct.h - choosing without branching, for secrets. */
#ifndef BASE_CT_H
#define BASE_CT_H

#include <stdbool.h>
#include <stddef.h>
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

/* The time says nothing of where they differ. */
static inline bool ct_equal(const void *a, const void *b, size_t len)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	uint64_t differ = 0;

	for (size_t i = 0; i < len; i++) {
		differ |= (uint64_t)(x[i] ^ y[i]);
		__asm__("" : "+r"(differ)); /* no way out before the end */
	}
	return differ == 0;
}

#endif
