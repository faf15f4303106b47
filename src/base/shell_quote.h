/* shell_quote.h - quotes a word for a shell. */
#ifndef BASE_SHELL_QUOTE_H
#define BASE_SHELL_QUOTE_H

#include "base/buf.h"

/* Appends `text` so that every POSIX shell reads it as exactly one word. Quotes are added only
 * if they are needed. Control characters are kept: the caller must make them visible before or
 * after. */
void shell_quote(struct buf *out, const char *text);

#endif
