#include "mcp/words.h"

#include <stdlib.h>
#include <string.h>

static size_t words_find(const struct words *w, const char *word)
{
	size_t i = 0;

	while (i < w->n && strcmp(w->v[i], word) != 0) {
		i++;
	}
	return i;
}

bool words_has(const struct words *w, const char *word)
{
	return words_find(w, word) < w->n;
}

int words_add(struct words *w, const char *word)
{
	if (words_has(w, word)) {
		return 0;
	}
	char **v = reallocarray(w->v, w->n + 1, sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	w->v = v;
	v[w->n] = strdup(word);
	if (v[w->n] == NULL) {
		return -1;
	}
	w->n++;
	return 0;
}

void words_remove(struct words *w, const char *word)
{
	size_t i = words_find(w, word);

	if (i < w->n) {
		free(w->v[i]);
		w->v[i] = w->v[--w->n];
	}
}

void words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->v[i]);
	}
	free(w->v);
	*w = (struct words){ 0 };
}

void words_write(const struct words *w, const char *key, struct json *j)
{
	json_kstrs(j, key, w->v, w->n);
}
