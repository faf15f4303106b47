/* base64.h - bytes as base64 (RFC 4648, with padding). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

char *base64_encode(const void *data, size_t len); /* new; NULL: no memory */

#endif
