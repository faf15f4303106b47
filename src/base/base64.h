/* base64.h - bytes as base64 (RFC 4648, with padding), and back. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

struct buf;

char *base64_encode(const void *data, size_t len); /* new; NULL: no memory */

/* Added to `out`. Strict, so that every value has one spelling: whole groups of four,
 * padded, no bits left over. -1: it is none, or there is no room; some of it may have
 * been added. */
int base64_decode(const char *text, size_t len, struct buf *out);

#endif
