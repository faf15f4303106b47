/* line.h - shows one line of a record on a terminal. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/reader.h"
#include "base/buf.h"

/* Converts a time of a record to the local time. Returns false if it is not a time. */
struct tm;
bool line_local_time(const char *time, struct tm *ret);
/* Appends "17:51:54", or "2026-11-15 17:51" if the time is not today. */
void line_put_time(struct buf *out, const char *when);

/* line_render() appends "[HH:MM:SS.mmm] icon CATEGORY message [TAG]" and a newline, in the
 * local time. If the line is only for programs, it appends nothing. `who` (may be "") comes
 * before the category, to distinguish several runs. */
struct render_style {
	int fd;       /* where the text will be written; decides whether it has colours */
	bool output;  /* also show the skill's own output */
	bool routine; /* also show what is routine (report/render.h) */
	const char *who;
};
/* On a terminal, the line is cut to its width. */
void line_render(struct buf *out, const struct line *l, const struct render_style *style);

/* Appends the line unchanged, for programs. On a terminal, deceptive characters become JSON
 * escapes, which mean the same. */
void line_render_raw(struct buf *out, const char *line, size_t len, int fd);

#endif
