/* array.h - room in a growing array that stores only its number of elements. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdlib.h>

/* Makes room for one more element in `v`, which has `n` elements of this size. The capacity is not
 * stored: the array is full when `n` is 0, 32 or a higher power of two. So only array_grow() may
 * grow it. Returns the array, which may have moved; NULL without memory, and then `v` is
 * unchanged. */
static inline void *array_grow(void *v, size_t n, size_t size)
{
	if (n != 0 && (n < 32 || (n & (n - 1)) != 0)) {
		return v;
	}
	return reallocarray(v, n == 0 ? 32 : n * 2, size);
}

#endif
