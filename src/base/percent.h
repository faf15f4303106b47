/* percent.h - the percent-encoding of URIs. */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <stdbool.h>

#include "base/buf.h"

bool percent_literal(unsigned char c, bool path); /* stands for itself */
/* As a URI template does it; slashes stay if `path`. */
void percent_encode(struct buf *out, const char *text, bool path);

#endif
