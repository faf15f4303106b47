/* line.h - shows one line of a record on a terminal. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/reader.h"
#include "base/buf.h"

/* line_render() appends "[HH:MM:SS.mmm] icon CATEGORY message [TAG]" and a newline, in the
 * local time. If the line is only for programs, it appends nothing. `who` (may be "") comes
 * before the category, to distinguish several runs. */
struct render_style {
	int fd;      /* where the text will be written; decides whether it has colours */
	bool output; /* also show the skill's own output */
	const char *who;
};
void line_render(struct buf *out, const struct line *l, const struct render_style *style);

/* Appends the line unchanged, for programs. On a terminal, deceptive characters become JSON
 * escapes, which mean the same. */
void line_render_raw(struct buf *out, const char *line, size_t len, int fd);

#endif
