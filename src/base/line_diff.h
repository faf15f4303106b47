/* line_diff.h - the lines in which two texts differ. No I/O.
 *
 * Myers' greedy algorithm: it finds the shortest list of removed and added lines in steps of one
 * more difference each. Both texts may be hostile, so that the number of differences, and of lines
 * from the first to the last of them, is capped (limits.h). */
#ifndef BASE_LINE_DIFF_H
#define BASE_LINE_DIFF_H

#include <stddef.h>

/* A line of the result. '@' stands for equal lines that are left out; `before` and `now` are the
 * numbers of the next lines, counted from 1. */
struct line_edit {
	char op;          /* ' ' equal, '-' removed, '+' added, '@' */
	const char *text; /* borrowed from the texts, without the newline */
	size_t len;
	size_t before;
	size_t now;
};

struct line_edits {
	struct line_edit *v;
	size_t n;
};

/* Returns the differences with `context` equal lines around each. -1 with errno: ENOMEM, or E2BIG
 * if there are too many lines or differences. */
int line_diff(const char *before, size_t before_len, const char *now, size_t now_len,
              size_t context, struct line_edits *ret);
void line_edits_done(struct line_edits *e);

#endif
