/* array.h - makes room in an array of which the caller stores the length, but not the capacity. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdlib.h>

/* Makes room for one more element in `v`, which has `n` elements of `size` bytes. The capacity is
 * not stored: the array is full when `n` is 0, 32 or a higher power of two. So no other function
 * may grow the array. Returns the array, which may have moved, or NULL if there is no memory; `v`
 * is then unchanged. */
static inline void *array_grow(void *v, size_t n, size_t size)
{
	if (n != 0 && (n < 32 || (n & (n - 1)) != 0)) {
		return v;
	}
	return reallocarray(v, n == 0 ? 32 : n * 2, size);
}

#endif
