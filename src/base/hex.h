/* hex.h - converts bytes to lower-case hexadecimal digits, and back.
 *
 * hex_encode() and hex_decode() handle keys: they have no table lookups or branches that depend on
 * the bytes. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>

/* Writes 2 * len digits and a NUL. */
void hex_encode(const void *data, size_t len, char *ret);

/* Accepts only exactly 2 * size lower-case digits, so that every value has one spelling. Returns 0,
 * or -1 with `ret` untouched. */
int hex_decode(const char *hex, size_t len, void *ret, size_t size);

/* Returns the value of one digit, upper or lower case; -1 if `c` is not a digit. */
int hex_digit(char c);

#endif
