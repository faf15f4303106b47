/* suggest.c - compares words by the number of edits between them. */
#include "base/suggest.h"

#include <string.h>

#define SUGGEST_MAX 40 /* longer words are not compared */

static size_t smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the number of edits (insert, delete, replace, swap neighbours) that change a into b. Both
 * must have at most SUGGEST_MAX bytes. */
static size_t suggest_distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][SUGGEST_MAX + 1];

	for (size_t j = 0; j <= nb; j++) {
		rows[0][j] = j;
	}
	for (size_t i = 1; i <= na; i++) {
		size_t *row = rows[i % 3];
		const size_t *up = rows[(i - 1) % 3];
		const size_t *up2 = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t d = up[j - 1] + (a[i - 1] != b[j - 1]);
			d = smaller_size(d, smaller_size(up[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
				d = smaller_size(d, up2[j - 2] + 1);
			}
			row[j] = d;
		}
	}
	return rows[na % 3][nb];
}

const char *suggest(const char *word, size_t len, const char *const *words, size_t n, size_t stride)
{
	const char *best = NULL;
	size_t best_distance = smaller_size(len / 3, 3) + 1; /* more than any accepted distance */

	if (len < 2 || len > SUGGEST_MAX) {
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const char *w = *(const char *const *)((const char *)words + i * stride);
		if (w == NULL || strlen(w) > SUGGEST_MAX) {
			continue;
		}
		size_t d = suggest_distance(word, len, w, strlen(w));
		if (d < best_distance) {
			best = w;
			best_distance = d;
		}
	}
	return best;
}
