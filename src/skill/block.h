/* block.h - the lines between the two fences at the head of a SKILL.md. Pure. */
#ifndef SKILL_BLOCK_H
#define SKILL_BLOCK_H

#include <stddef.h>

#include "base/buf.h"

/* Appends them with plain ends. -1: the text does not begin with a line of three hyphens,
 * no second one follows, or they are more than the buffer may hold. */
int block_read(struct buf *out, const char *text, size_t len);
/* The same behind a byte order mark and empty lines. 1; 0: the text does not begin with a
 * fence; -1: it does, and the rest is none. *ret_line is that of the first fence. */
int block_find(struct buf *out, const char *text, size_t len, unsigned *ret_line);

#endif
