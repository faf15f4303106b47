/* columns.h - how many columns of a terminal a text takes, and where a line of it ends. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the columns of the character at the start of the `len` > 0 bytes at s, and sets
 * *ret_bytes to its length. A colour sequence of our own (ESC [ ... m) takes no column. For a
 * character from U+1100 on, the result is never too small, because most of these can take two
 * columns. If `strict` is true, this holds for every character that is not ASCII, because some
 * terminals draw Greek and Cyrillic in two columns. */
size_t columns_step(const char *s, size_t len, bool strict, size_t *ret_bytes);

/* Returns how many columns the text takes. */
size_t columns_count(const char *s, size_t len);

/* Returns how many of the `len` bytes at s fit into a line of `columns`. The line ends after a
 * space if it has one, otherwise between two characters. */
size_t columns_fit(const char *s, size_t len, size_t columns, bool strict);

#endif
