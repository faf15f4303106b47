/* array.h - finds an element of an array, and makes room in an array of which the caller stores the
 * length, but not the capacity. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/* Returns the first of the `n` elements of `v` for which `test` is true; NULL: none. `test` names
 * the element by the pointer `e`: ARRAY_FIND(run, l->v, l->n, run->pid == pid). A name that is
 * declared cannot be in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define ARRAY_FIND(e, v, n, test)                                                                  \
	({                                                                                         \
		__typeof__((v) + 0) e = (v);                                                       \
		size_t e##_left = (n);                                                             \
		while (e##_left > 0 && !(test)) {                                                  \
			e++;                                                                       \
			e##_left--;                                                                \
		}                                                                                  \
		e##_left > 0 ? e : NULL;                                                           \
	})
/* NOLINTEND(bugprone-macro-parentheses) */
/* Returns whether `test` is true for one of the elements. */
#define ARRAY_HAS(e, v, n, test) (ARRAY_FIND(e, v, n, test) != NULL)

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
/* Does the same for the array `v` itself. Returns false without memory. */
#define ARRAY_MORE(v, n)                                                                           \
	({                                                                                         \
		void *more_ = array_grow((v), (n), sizeof(*(v)));                                  \
		if (more_ != NULL) {                                                               \
			(v) = more_;                                                               \
		}                                                                                  \
		more_ != NULL;                                                                     \
	})

#endif
