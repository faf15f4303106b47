/* percent.h - the percent-encoding of URIs. */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <stdbool.h>

#include "base/buf.h"

bool percent_literal(unsigned char c, bool path); /* true if `c` is written unchanged */
/* Appends `text` in the encoding of URI templates. If `path` is true, slashes are not encoded. */
void percent_encode(struct buf *out, const char *text, bool path);

#endif
