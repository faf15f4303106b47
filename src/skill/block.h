/* block.h - the lines between the two fences at the head of a SKILL.md. Pure. */
#ifndef SKILL_BLOCK_H
#define SKILL_BLOCK_H

#include <stddef.h>

#include "base/buf.h"

/* Appends them with plain ends. -1: the text does not begin with a line of three hyphens,
 * no second one follows, or they are more than the buffer may hold. */
int block_read(struct buf *out, const char *text, size_t len);

#endif
