/* danger_set.h - the rows of the table behind danger.h, and the places that were looked up for
 * one owner. */
#ifndef POLICY_DANGER_SET_H
#define POLICY_DANGER_SET_H

#include <stddef.h>

#include "policy/danger.h"
#include "policy/mounts.h"

struct danger_row {
	const char *path; /* "/..." or "~/..." */
	unsigned flags;
	const char *why;
};

extern const struct danger_row DANGER_ROWS[];
extern const size_t DANGER_ROWS_COUNT;

/* A place that the owner cannot grant either. Its flags do not contain DANGER_NEVER. */
struct never_row {
	struct danger_row row;
	const char *instead; /* what to do: a remedy */
};

extern const struct never_row NEVER_ROWS[];
extern const size_t NEVER_ROWS_COUNT;

/* A path that was looked up: that of a place, or of a directory above one. */
struct folder {
	char *path;
	size_t len;
	struct object id;
	bool named;   /* the name exists, even if it is a symlink that leads nowhere */
	bool exists;  /* `id` is known */
	bool unknown; /* an error hides whether it, or anything in it, exists */
	bool real;    /* the path contains no symlink */
	char *led_to; /* the real path to which this symlink leads; NULL: not one, or not known */
};

/* The names in one directory, so that its many absent places need no lookup. */
struct dir_names {
	char *dir;   /* NULL: too many names, or they cannot be read */
	char *names; /* each NUL-terminated */
	size_t len;
};

struct danger {
	enum access access; /* ACCESS_READ: without places that are dangerous only to write */
	struct place *places;
	size_t n_places;
	struct folder *folders;
	size_t n_folders;
	bool follows; /* a symlink is being followed: no second one is, which bounds the recursion
	               */
	struct object home;
	struct mounts mounts; /* read when first needed */
	struct dir_names listings[3];
	struct string_list stores; /* see danger_take_stores() */
	struct danger *led;        /* see danger_led() */
};

/* Returns where a symlink leads, even if nothing is there yet; new. NULL with errno. */
char *danger_led_to(const char *path);
/* Returns where the words of a symlink say that it leads; new. Further symlinks may be on that way.
 * The path of the symlink's directory must have no symlink. NULL if the words are not enough. */
char *danger_link_words(const char *link);
/* Adds the place that a symlink leads to, under the symlink's name. Copies both paths. */
int danger_add_link(struct danger *d, const char *link, const char *target, const char *why,
                    unsigned flags);
/* Returns the deepest existing directory above `path` that does not contain the next name; NULL
 * if a symlink is on the way or `path` was not looked up. */
const struct folder *danger_above(const struct danger *d, const char *path);
/* Removes the places from this index on. */
void danger_drop(struct danger *d, size_t from);

/* Adds the runtime's own files, wherever they are (danger_own.c). Returns -1 without memory. */
int danger_add_own(struct danger *d, const struct owner *o);

#endif
