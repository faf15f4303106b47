/* hex.h - bytes as lower-case hexadecimal, and back.
 *
 * Keys pass through the first two: neither table lookups nor branches depend on the
 * bytes. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>

/* Writes 2 * len digits and a NUL. */
void hex_encode(const void *data, size_t len, char *ret);

/* Exactly 2 * size digits, lower case only, so that every value has one
 * spelling. -1 for anything else, `ret` untouched. */
int hex_decode(const char *hex, size_t len, void *ret, size_t size);

/* The value of one digit, upper or lower case; -1: it is none. */
int hex_digit(char c);

#endif
