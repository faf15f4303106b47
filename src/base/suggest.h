/* suggest.h - finds the known word that is most similar to a misspelt one ("did you mean"). */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* Returns the most similar of `n` words, or NULL if none is similar enough. `stride` is the number
 * of bytes from one pointer in `words` to the next, so that a column of any table can be searched.
 * NULL words are skipped. */
const char *suggest(const char *word, size_t len, const char *const *words, size_t n,
                    size_t stride);

#endif
