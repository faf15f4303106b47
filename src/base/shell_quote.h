/* shell_quote.h - quotes a word for a shell. */
#ifndef BASE_SHELL_QUOTE_H
#define BASE_SHELL_QUOTE_H

#include "base/buf.h"

/* Appends `text` so that every POSIX shell reads exactly one word, without quotes if none are
 * needed. Control characters are kept: the caller makes them visible before or after. */
void shell_quote(struct buf *out, const char *text);

#endif
