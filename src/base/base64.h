/* base64.h - base64 with padding (RFC 4648), in both directions. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

struct buf;

char *base64_encode(const void *data, size_t len); /* returns new; NULL without memory */

/* Appends the bytes to `out`. Strict, so that every value has one spelling: whole groups of four,
 * padded, without leftover bits. -1 if the text is not base64 or `out` is full; part of it may have
 * been appended. */
int base64_decode(const char *text, size_t len, struct buf *out);

#endif
