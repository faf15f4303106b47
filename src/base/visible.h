/* visible.h - makes hidden characters in a text visible to people.
 *
 * Characters that can control a terminal, reverse the text, or be invisible (but be read by a
 * model) are written as escapes. */
#ifndef BASE_VISIBLE_H
#define BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the text with control characters, invalid UTF-8 and invisible or direction-changing
 * characters as escapes. Newlines and tabs are kept if `keep_lines`. */
void visible_text(struct buf *out, const char *text, bool keep_lines);
void visible_bytes(struct buf *out, const char *text, size_t len, bool keep_lines);
/* Appends `fmt`, in which each %s is a text to be made visible, in one line. `fmt` itself is our
 * own text and has no other conversion. */
void visible_addf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool visible_deceptive(uint32_t cp); /* true if visible_text() escapes it */

#endif
