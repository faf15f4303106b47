/* ct.h - compares secrets in constant time. */
#ifndef BASE_CT_H
#define BASE_CT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the bytes are equal. The time does not depend on the position of a difference: the empty
 * assembly stops the compiler from leaving the loop early; tests/lint/constant-time checks the
 * compiled code. */
static inline bool ct_equal(const void *a, const void *b, size_t len)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	uint64_t differ = 0;

	for (size_t i = 0; i < len; i++) {
		differ |= (uint64_t)(x[i] ^ y[i]);
		__asm__("" : "+r"(differ));
	}
	return differ == 0;
}

#endif
