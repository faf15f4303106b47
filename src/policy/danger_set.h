/* danger_set.h - the rows of the table behind danger.h, and the places that were looked up for
 * one owner. */
#ifndef POLICY_DANGER_SET_H
#define POLICY_DANGER_SET_H

#include <stddef.h>

#include "policy/danger.h"
#include "policy/lookups.h"
#include "policy/mounts.h"

struct danger_row {
	const char *path; /* "/..." or "~/..." */
	unsigned flags;
	const char *why;
};

extern const struct danger_row DANGER_ROWS[];
extern const size_t DANGER_ROWS_COUNT;

/* A place that not even the owner can grant. Its flags omit DANGER_NEVER, which is added when the
 * place is looked up. */
struct never_row {
	struct danger_row row;
	const char *instead; /* what the owner can do instead */
};

extern const struct never_row NEVER_ROWS[];
extern const size_t NEVER_ROWS_COUNT;

struct danger {
	enum access access; /* ACCESS_READ: without places that are dangerous only to write */
	struct place *places;
	size_t n_places;
	struct lookups lookups;
	struct object home;
	struct mounts mounts; /* read when first needed */
	struct danger *led;   /* see danger_led() */
};

/* Adds two places: the symlink `link`, and its `target`, which messages call by the path of the
 * symlink. Copies both paths. */
int danger_add_link(struct danger *d, const char *link, const char *target, const char *why,
                    unsigned flags);
/* Removes the places with index `from` and higher. */
void danger_drop(struct danger *d, size_t from);

/* The flags of a place with a hidden name, or to which a hidden name leads. */
#define DANGER_OF_HIDDEN ((unsigned)(DANGER_READ | DANGER_WRITE | DANGER_BENEATH | DANGER_HIDDEN))
/* Adds the paths at which mounts show the target of a hidden name, of a place of `d` or of a place
 * of `table` (danger_led_mounts.c). `all` may be NULL after an error of danger_mounts(). Returns -1
 * with errno. */
int danger_add_mounts(struct danger *d, const struct danger *table, const struct owner *o,
                      const struct mounts *all);
/* Reads the names in the home and in ~/.config, in which most places are (lookups_list()). */
void danger_list_home(struct lookups *l, const char *home);
/* Adds the runtime's own files, wherever they are (danger_own.c). Returns -1 without memory. */
int danger_add_own(struct danger *d, const struct owner *o);

#endif
