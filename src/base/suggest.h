/* suggest.h - "did you mean": the known word nearest to a misspelt one. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* Returns the nearest of `n` words, or NULL if none is near enough. `stride` is the distance
 * between the pointers to the words in bytes, so that a column of any table can be searched. NULL
 * words are skipped. */
const char *suggest(const char *word, size_t len, const char *const *words, size_t n,
                    size_t stride);

#endif
