/* string_list.h - a list that owns its strings. */
#ifndef BASE_STRING_LIST_H
#define BASE_STRING_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct string_list {
	char **v; /* NULL-terminated if not empty */
	size_t n;
};

/* Appends a copy of `s`. Returns 0, or -1 with errno: E2BIG if the list already has `max` items, or
 * ENOMEM. */
int string_list_add(struct string_list *l, const char *s, size_t max);
bool string_list_has(const struct string_list *l, const char *s);
/* Like string_list_add(), but does nothing if the list contains `s`. */
int string_list_add_once(struct string_list *l, const char *s, size_t max);
/* Removes `s` if the list contains it. */
void string_list_drop(struct string_list *l, const char *s);
void string_list_done(struct string_list *l);

#endif
