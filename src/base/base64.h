/* base64.h - base64 with padding (RFC 4648), in both directions. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

struct buf;

char *base64_encode(const void *data, size_t len); /* returns new; NULL without memory */

/* Appends the decoded bytes to `out`. Each value has only one accepted spelling: complete groups of
 * four characters, padded with '=', in which unused bits are 0. Returns 0, or -1 if the text is not
 * base64 or `out` is full; a part of the bytes may then have been appended. */
int base64_decode(const char *text, size_t len, struct buf *out);

#endif
