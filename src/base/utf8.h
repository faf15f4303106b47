/* utf8.h - the one place that decides what valid UTF-8 is. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the sequence at s, where len > 0 bytes are. Returns its length 1..4 and *ret_cp, or 0 if
 * it is not valid UTF-8 (overlong, surrogate, above 10FFFF or cut off). */
size_t utf8_decode(const char *s, size_t len, uint32_t *ret_cp);

/* The length of s, or the place to cut it so that at most `max` bytes remain and no sequence is
 * split. */
size_t utf8_cut(const char *s, size_t max);

#endif
