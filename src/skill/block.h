/* block.h - the lines between the two fences at the beginning of a SKILL.md. Pure. */
#ifndef SKILL_BLOCK_H
#define SKILL_BLOCK_H

#include <stddef.h>

#include "base/buf.h"

/* Appends these lines with plain line ends. Returns -1 if the text does not begin with a line of
 * three hyphens, if there is no second one, or if the lines do not fit into the buffer. */
int block_read(struct buf *out, const char *text, size_t len);
/* The same after a byte order mark and empty lines. Returns 1; 0 if the text does not begin with
 * a fence; -1 if it does and is not a block. *ret_line is the line of the first fence. */
int block_find(struct buf *out, const char *text, size_t len, unsigned *ret_line);

#endif
