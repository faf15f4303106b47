/* suggest.h - "did you mean": the known word nearest to a misspelt one. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* The nearest of `n` words, or NULL where none is near enough to be meant.
 * `stride` is the distance between the words' pointers in bytes, so that a
 * column of any table can be searched; a NULL word is skipped. */
const char *suggest(const char *word, size_t len, const char *const *words, size_t n,
                    size_t stride);

#endif
