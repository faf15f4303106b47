/* line_diff.h - finds the lines in which two texts differ. No I/O.
 *
 * It uses Myers' greedy algorithm, which finds the shortest list of removed and added lines; each
 * step allows one more difference. Both texts may be hostile. So there is a cap on the number of
 * differences, and on the number of lines from the first to the last difference (limits.h). */
#ifndef BASE_LINE_DIFF_H
#define BASE_LINE_DIFF_H

#include <stddef.h>

/* A line of the result. '@' means that equal lines are left out there. `before` and `now` are line
 * numbers in the two texts, from 1; for '@', the numbers of the line after the gap. */
struct line_edit {
	char op;          /* ' ' equal, '-' removed, '+' added, '@' left out */
	const char *text; /* borrowed from the texts, without the newline */
	size_t len;
	size_t before;
	size_t now;
};

struct line_edits {
	struct line_edit *v;
	size_t n;
};

/* Fills *ret (new, for line_edits_done()) with the differences and `context` equal lines around
 * each. Returns 0, or -1 with errno: ENOMEM, or E2BIG if there are too many lines or
 * differences. */
int line_diff(const char *before, size_t before_len, const char *now, size_t now_len,
              size_t context, struct line_edits *ret);
void line_edits_done(struct line_edits *e);

#endif
