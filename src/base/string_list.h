/* string_list.h - strings that a list owns. */
#ifndef BASE_STRING_LIST_H
#define BASE_STRING_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct string_list {
	char **v; /* NULL-terminated once non-empty */
	size_t n;
};

/* Appends a copy; -1 without memory or, with E2BIG, past `max` items. */
int string_list_add(struct string_list *l, const char *s, size_t max);
bool string_list_has(const struct string_list *l, const char *s);
/* The same as string_list_add(), unless it is in the list. */
int string_list_add_once(struct string_list *l, const char *s, size_t max);
void string_list_done(struct string_list *l);

#endif
