/* string_list.c - grows and frees a list of strings. */
#include "base/string_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int string_list_add(struct string_list *l, const char *s, size_t max)
{
	if (l->n >= max) {
		errno = E2BIG;
		return -1;
	}
	char **v = realloc(l->v, (l->n + 2) * sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	l->v = v;
	v[l->n] = strdup(s);
	if (v[l->n] == NULL) {
		return -1;
	}
	v[++l->n] = NULL;
	return 0;
}

bool string_list_has(const struct string_list *l, const char *s)
{
	return ARRAY_HAS(e, l->v, l->n, strcmp(*e, s) == 0);
}

int string_list_add_once(struct string_list *l, const char *s, size_t max)
{
	return string_list_has(l, s) ? 0 : string_list_add(l, s, max);
}

void string_list_drop(struct string_list *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i], s) == 0) {
			free(l->v[i]);
			/* with the NULL at the end */
			memmove(&l->v[i], &l->v[i + 1], (l->n - i) * sizeof(*l->v));
			l->n--;
			return;
		}
	}
}

void string_list_done(struct string_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i]);
	}
	free(l->v);
	*l = (struct string_list){ 0 };
}
