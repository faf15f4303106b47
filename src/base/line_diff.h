/* line_diff.h - the lines in which two texts differ. Pure.
 *
 * Myers' greedy way: the shortest list of lines to take out and to put in, found in steps of
 * one more difference each. Both texts may be hostile: their differences, and the lines
 * between the first of them and the last, are capped (limits.h). */
#ifndef BASE_LINE_DIFF_H
#define BASE_LINE_DIFF_H

#include <stddef.h>

/* A line of the result. '@': lines that are the same are left out here; `before` and `now`
 * are the numbers, from 1 on, of the next lines. */
struct line_edit {
	char op;          /* ' ' the same, '-' taken out, '+' put in, '@' */
	const char *text; /* borrowed from the texts; without its newline */
	size_t len;
	size_t before;
	size_t now;
};

struct line_edits {
	struct line_edit *v;
	size_t n;
};

/* With `context` lines that are the same around each difference. -1 with errno: ENOMEM, or
 * E2BIG where there are too many lines or differences. */
int line_diff(const char *before, size_t before_len, const char *now, size_t now_len,
              size_t context, struct line_edits *ret);
void line_edits_done(struct line_edits *e);

#endif
