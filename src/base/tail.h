/* tail.h - tests how a text ends. */
#ifndef BASE_TAIL_H
#define BASE_TAIL_H

#include <stdbool.h>
#include <string.h>

/* Returns true if `s` ends with `tail`. */
static inline bool tail_is(const char *s, const char *tail)
{
	size_t len = strlen(s);
	size_t n = strlen(tail);

	return len >= n && memcmp(s + len - n, tail, n) == 0;
}

/* Returns true if `s` is `tail`, or ends with it behind `mark`: a name beneath a domain, a path
 * beneath a directory. */
static inline bool tail_behind(const char *s, char mark, const char *tail)
{
	size_t len = strlen(s);
	size_t n = strlen(tail);

	return tail_is(s, tail) && (len == n || s[len - n - 1] == mark);
}

#endif
