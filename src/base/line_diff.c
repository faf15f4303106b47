/* line_diff.c - finds the shortest list of differences with Myers' greedy algorithm. */
#include "base/line_diff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"

struct line_diff_text {
	const char *s;
	size_t len;
};

struct lines {
	struct line_diff_text *v;
	size_t n;
};

static void lines_done(struct lines *l)
{
	free(l->v);
}

static int split_lines(const char *s, size_t len, struct lines *ret)
{
	struct line_diff_text *v = calloc(MAX_DIFF_LINES, sizeof(*v));
	size_t n = 0;

	while (v != NULL && len > 0) {
		const char *end = memchr(s, '\n', len);
		size_t here = end != NULL ? (size_t)(end - s) : len;
		size_t step = here + (end != NULL ? 1 : 0);
		if (n == MAX_DIFF_LINES) {
			free(v);
			errno = E2BIG;
			return -1;
		}
		v[n++] = (struct line_diff_text){ s, here };
		s += step;
		len -= step;
	}
	*ret = (struct lines){ v, n };
	return v != NULL ? 0 : -1;
}

static bool is_same_line(const struct line_diff_text *a, const struct line_diff_text *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->s, b->s, a->len) == 0);
}

/* ---- equal lines at both ends ------------------------------------------- */

/* The part of each text that is compared. It leaves out the equal lines at the beginning and at the
 * end of the texts, except `context` lines on each side. This keeps the comparison of long texts
 * short if they differ in few lines. */
struct middle {
	size_t from;  /* bytes left out at the beginning of each text */
	size_t after; /* bytes left out at the end */
	size_t lines; /* lines left out at the beginning */
};

static struct middle find_middle(const char *a, size_t n, const char *b, size_t m, size_t context)
{
	struct middle r = { 0 };
	size_t least = n < m ? n : m;
	size_t left = context + 1;

	while (r.from < least && a[r.from] == b[r.from]) {
		r.from++;
	}
	size_t most = least - r.from;
	while (r.after < most && a[n - r.after - 1] == b[m - r.after - 1]) {
		r.after++;
	}
	/* Move `from` back to the start of its line, and then over `context` lines before it. */
	while (r.from > 0 && (a[r.from - 1] != '\n' || --left > 0)) {
		r.from--;
	}
	/* The part that is left out at the end must begin at the start of a line. */
	for (left = context + 1; r.after > 0 && left > 0; r.after--) {
		left -= a[n - r.after] == '\n' ? 1 : 0;
	}
	for (size_t i = 0; i < r.from; i++) {
		r.lines += a[i] == '\n' ? 1 : 0;
	}
	return r;
}

/* ---- the shortest way ---------------------------------------------------- */

/* The rows of Myers' algorithm. Row d has, for each diagonal k = x - y from -d to d in steps of 2,
 * the greatest x that can be reached with d differences. trace_back() needs all rows. */
struct line_diff_search {
	const struct lines *a;
	const struct lines *b;
	size_t lines; /* number of lines that were left out before `a` and `b` */
	int rows[MAX_DIFF_EDITS + 1][2 * MAX_DIFF_EDITS + 3];
};

#define AT(s, d, k) ((s)->rows[d][(k) + MAX_DIFF_EDITS + 1])

/* Returns true if the step to diagonal k comes from k + 1 (an added line), false if from k - 1 (a
 * removed line). */
static bool from_above(const struct line_diff_search *s, int d, int k)
{
	return k == -d || (k != d && AT(s, d - 1, k - 1) < AT(s, d - 1, k + 1));
}

static int find_furthest(struct line_diff_search *s, int d, int k)
{
	int x = d == 0 ? 0 : from_above(s, d, k) ? AT(s, d - 1, k + 1) : AT(s, d - 1, k - 1) + 1;
	int y = x - k;

	while (x >= 0 && y >= 0 && (size_t)x < s->a->n && (size_t)y < s->b->n &&
	       is_same_line(&s->a->v[x], &s->b->v[y])) {
		x++;
		y++;
	}
	AT(s, d, k) = x;
	return x;
}

/* Fills the rows. Returns the number of differences; -1 with E2BIG if there are too many. */
static int find_shortest(struct line_diff_search *s)
{
	for (int d = 0; d <= MAX_DIFF_EDITS; d++) {
		for (int k = -d; k <= d; k += 2) {
			int x = find_furthest(s, d, k);
			if ((size_t)x >= s->a->n && x - k >= (int)s->b->n) {
				return d;
			}
		}
	}
	errno = E2BIG;
	return -1;
}

/* Lists the edits by walking back from the end, so the last line comes first. */
static void trace_back(const struct line_diff_search *s, int d, struct line_edits *all)
{
	int x = (int)s->a->n, y = (int)s->b->n;

	for (; d >= 0; d--) {
		int k = x - y;
		bool above = d > 0 && from_above(s, d, k);
		int start = d == 0 ? 0 : above ? AT(s, d - 1, k + 1) : AT(s, d - 1, k - 1) + 1;
		for (; x > start; x--, y--) {
			all->v[all->n++] =
			        (struct line_edit){ ' ', s->a->v[x - 1].s, s->a->v[x - 1].len,
				                    s->lines + (size_t)x, s->lines + (size_t)y };
		}
		if (above) {
			all->v[all->n++] =
			        (struct line_edit){ '+', s->b->v[y - 1].s, s->b->v[y - 1].len,
				                    s->lines + (size_t)x + 1,
				                    s->lines + (size_t)y };
			y--;
		} else if (d > 0) {
			all->v[all->n++] =
			        (struct line_edit){ '-', s->a->v[x - 1].s, s->a->v[x - 1].len,
				                    s->lines + (size_t)x,
				                    s->lines + (size_t)y + 1 };
			x--;
		}
	}
}

/* ---- the lines that are shown -------------------------------------------- */

static bool near_change(const struct line_edits *all, size_t i, size_t context)
{
	size_t from = i > context ? i - context : 0;

	for (size_t k = from; k <= i + context && k < all->n; k++) {
		if (all->v[k].op != ' ') {
			return true;
		}
	}
	return false;
}

/* Copies the lines to show from `all`, which begins with the last line, to `ret`, which begins with
 * the first. */
static int choose_edits(const struct line_edits *all, size_t context, struct line_edits *ret)
{
	struct line_edit *v = calloc(2 * all->n + 1, sizeof(*v));
	bool gap = false;
	size_t n = 0;

	for (size_t i = all->n; v != NULL && i > 0; i--) {
		const struct line_edit *e = &all->v[i - 1];
		if (!near_change(all, i - 1, context)) {
			gap = true;
			continue;
		}
		if (gap || n == 0) {
			v[n++] = (struct line_edit){ '@', "", 0, e->before, e->now };
		}
		gap = false;
		v[n++] = *e;
	}
	*ret = (struct line_edits){ v, n };
	return v != NULL ? 0 : -1;
}

int line_diff(const char *before, size_t before_len, const char *now, size_t now_len,
              size_t context, struct line_edits *ret)
{
	AUTO(line_edits_done) struct line_edits all = { 0 };
	AUTO(lines_done) struct lines a = { 0 };
	AUTO(lines_done) struct lines b = { 0 };
	auto_free struct line_diff_search *s = calloc(1, sizeof(*s));

	struct middle mid = find_middle(before, before_len, now, now_len, context);
	if (s == NULL ||
	    split_lines(before + mid.from, before_len - mid.from - mid.after, &a) != 0 ||
	    split_lines(now + mid.from, now_len - mid.from - mid.after, &b) != 0) {
		return -1;
	}
	s->a = &a;
	s->b = &b;
	s->lines = mid.lines;
	all.v = calloc(a.n + b.n + 1, sizeof(*all.v));
	int d = all.v != NULL ? find_shortest(s) : -1;
	if (d < 0) {
		return -1;
	}
	trace_back(s, d, &all);
	return choose_edits(&all, context, ret);
}

void line_edits_done(struct line_edits *e)
{
	free(e->v);
	*e = (struct line_edits){ 0 };
}
