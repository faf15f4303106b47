/* event_copy.c - copies an event with its texts into one piece of memory: the event, its
 * arguments, the bytes of `more`, and then all texts. */
#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "trace/event.h"

/* event_copy() copies the arrays `bytes` and `strings` of struct event in loops. If you add a
 * pointer to struct event that is in neither array, copy it below, and add its size in
 * event_size(). */
_Static_assert(offsetof(struct event, call) - offsetof(struct event, message) ==
                       EVENT_BYTES * sizeof(struct bytes),
               "EVENT_BYTES counts the first group");
_Static_assert(offsetof(struct event, args) - offsetof(struct event, call) ==
                       EVENT_STRINGS * sizeof(char *),
               "EVENT_STRINGS counts the second group");
_Static_assert(sizeof(struct event) == 264, "event_copy() must know every pointer");
_Static_assert(alignof(struct event) <= EVENT_ALIGN, "a copy is aligned");

static size_t round_up(size_t n)
{
	return (n + EVENT_ALIGN - 1) & ~(size_t)(EVENT_ALIGN - 1);
}

static size_t string_size(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

size_t event_size(const struct event *e)
{
	size_t n = round_up(sizeof(*e)) + e->n_args * sizeof(e->args[0]) + round_up(e->more_size);

	for (size_t i = 0; i < EVENT_BYTES; i++) {
		n += e->bytes[i].n;
	}
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		n += string_size(e->strings[i]);
	}
	for (size_t i = 0; i < e->n_args; i++) {
		n += e->args[i].n;
	}
	return round_up(n);
}

/* Appends bytes at *at and returns their new address. */
static char *copy_bytes(char **at, const void *from, size_t n)
{
	char *to = *at;

	if (n > 0) {
		memcpy(to, from, n);
	}
	*at += n;
	return to;
}

/* NULL stays NULL; an empty text stays an empty text. */
static struct bytes copy_text(char **at, const struct bytes *from)
{
	return from->p == NULL ? (struct bytes){ NULL, 0 }
	                       : (struct bytes){ copy_bytes(at, from->p, from->n), from->n };
}

struct event *event_copy(void *to, size_t size, const struct event *e)
{
	assert((uintptr_t)to % EVENT_ALIGN == 0);
	assert(e->more_arg == NULL || e->more_size > 0);

	struct event *copy = to;
	char *at = (char *)to + round_up(sizeof(*e));

	*copy = *e;
	struct bytes *args = (struct bytes *)(void *)at;
	at += e->n_args * sizeof(args[0]);
	if (e->more_size > 0) {
		copy->more_arg = copy_bytes(&at, e->more_arg, e->more_size);
		at += round_up(e->more_size) - e->more_size;
	}
	for (size_t i = 0; i < EVENT_BYTES; i++) {
		copy->bytes[i] = copy_text(&at, &e->bytes[i]);
	}
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		const char *s = e->strings[i];
		copy->strings[i] = s != NULL ? copy_bytes(&at, s, string_size(s)) : NULL;
	}
	for (size_t i = 0; i < e->n_args; i++) {
		args[i] = copy_text(&at, &e->args[i]);
	}
	copy->args = e->n_args > 0 ? args : NULL;
	assert((size_t)(at - (char *)to) <= size);
	return copy;
}
