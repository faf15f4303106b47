/* shell_quote.h - a word for a shell. */
#ifndef BASE_SHELL_QUOTE_H
#define BASE_SHELL_QUOTE_H

#include "base/buf.h"

/* Appends `text` so that every POSIX shell reads it back as one word, as it is; without
 * quotes where it needs none. Control characters stay what they are: what people see
 * is made visible first, or after. */
void shell_quote(struct buf *out, const char *text);

#endif
