/* line.h - shows one line of a record on a terminal. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/reader.h"
#include "base/buf.h"

/* [HH:MM:SS.mmm] icon CATEGORY message [TAG] with a newline, in the local time. Nothing for lines
 * that have no meaning for people. `who` (may be "") comes before the category, to tell several
 * runs apart. */
struct render_style {
	int fd;      /* where it goes: decides on colours */
	bool output; /* also the skill's own output */
	const char *who;
};
void line_render(struct buf *out, const struct line *l, const struct render_style *style);

/* The line unchanged, for programs. On a terminal, deceptive characters are JSON escapes, which
 * mean the same. */
void line_render_raw(struct buf *out, const char *line, size_t len, int fd);

#endif
