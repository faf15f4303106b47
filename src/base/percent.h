/* percent.h - the percent-encoding of URIs. */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <stdbool.h>

#include "base/buf.h"

bool percent_literal(unsigned char c, bool path); /* true: `c` is written unchanged */
/* Encodes like a URI template; slashes are kept if `path`. */
void percent_encode(struct buf *out, const char *text, bool path);

#endif
