/* block.h - reads the frontmatter of a SKILL.md: the lines between the two fences ("---") at its
 * beginning. No I/O. */
#ifndef SKILL_BLOCK_H
#define SKILL_BLOCK_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the lines between the fences to `out`. Each line ends with "\n", even if it ended with
 * "\r\n". Returns 0, or -1 if the text does not begin with a line of three hyphens, if there is no
 * second such line, or if the lines do not fit into the buffer. */
int block_read(struct buf *out, const char *text, size_t len);
/* Like block_read(), but skips a byte order mark and empty lines at the beginning. Returns 1 if the
 * lines were read, 0 if the text does not begin with a fence, and -1 if it begins with a fence but
 * block_read() fails. Sets *ret_line to the line number of the first fence. */
int block_find(struct buf *out, const char *text, size_t len, unsigned *ret_line);

#endif
