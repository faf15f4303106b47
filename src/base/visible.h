/* visible.h - text from others, so that people see what is there.
 *
 * Whatever could steer a terminal, turn text around, or stand in it unseen (and
 * be read by a model all the same) is written as an escape. */
#ifndef BASE_VISIBLE_H
#define BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends text with control characters, invalid UTF-8 and invisible or
 * direction-changing characters made visible; newlines and tabs stay if
 * `keep_lines`. */
void visible_text(struct buf *out, const char *text, bool keep_lines);
void visible_bytes(struct buf *out, const char *text, size_t len, bool keep_lines);
bool visible_deceptive(uint32_t cp); /* one of those */

#endif
