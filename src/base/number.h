/* number.h - reads decimal numbers in one strict form: only digits, without blanks, a plus sign or
 * the prefix of another base. Leading zeros are accepted.
 *
 * These functions are for text from people, skills and peers. The kernel's files in /proc are
 * trusted, have columns and other bases, and are read with strtoull(). */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the digits at the start of `text` and returns a pointer to the text after them. Returns
 * NULL, with *ret untouched, if there are no digits or the number is greater than `max`. */
const char *number_read(const char *text, uint64_t max, uint64_t *ret);
/* Reads a number that may begin with a minus sign; otherwise like number_read(). */
const char *number_read_signed(const char *text, int64_t *ret);

/* Both functions read the whole `text`. They return false, with *ret untouched, if anything follows
 * the number or if it is not in the range. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
bool number_parse_signed(const char *text, int64_t *ret);

#endif
