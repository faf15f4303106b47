/* utf8.h - decodes UTF-8. Only this file decides which bytes are valid UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the sequence at the start of the `len` > 0 bytes at s. Returns its length (1 to 4) and
 * sets *ret_cp; returns 0 if it is not valid UTF-8 (overlong, surrogate, above 10FFFF or
 * incomplete). */
size_t utf8_decode(const char *s, size_t len, uint32_t *ret_cp);

/* Returns whether the bytes are valid UTF-8 without NUL. */
bool utf8_is_text(const char *s, size_t len);
/* Returns whether the string is valid UTF-8 without control characters of ASCII. */
bool utf8_is_line(const char *s);

/* Returns the greatest length, at most `max`, to which s can be cut without splitting a
 * sequence. */
size_t utf8_cut(const char *s, size_t max);

#endif
