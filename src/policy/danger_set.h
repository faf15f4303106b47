/* danger_set.h - inside danger.h: the rows of the table, and the places that
 * were looked up for one owner. */
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

/* What the owner cannot grant either; its flags are without DANGER_NEVER. */
struct never_row {
	struct danger_row row;
	const char *instead; /* what to do: a remedy */
};

extern const struct never_row NEVER_ROWS[];
extern const size_t NEVER_ROWS_COUNT;

/* A path that was looked up: one that a place has, or a directory above one. */
struct folder {
	char *path;
	size_t len;
	struct object id;
	bool named;  /* something has the name, if only a symlink that leads nowhere */
	bool exists; /* `id` is known */
	bool real;   /* no symlink in its path */
};

/* The names in one directory, so that its many absent places need no look. */
struct dir_names {
	char *dir;   /* NULL: too many names, or none to be had */
	char *names; /* each NUL-terminated */
	size_t len;
};

struct danger {
	enum access access; /* ACCESS_READ: without the places that are dangerous only to write */
	struct place *places;
	size_t n_places;
	struct folder *folders;
	size_t n_folders;
	struct object home;
	struct mounts mounts; /* read when first needed */
	struct dir_names listings[2];
	struct danger *led; /* see danger_led() */
};

/* Where a symlink leads, also if nothing is there yet; new. NULL with errno. */
char *danger_led_to(const char *path);
/* The place that a symlink leads to, known by that name; both paths are copied. */
int danger_add_link(struct danger *d, const char *link, const char *target, const char *why,
                    unsigned flags);
/* The deepest directory above `path` that exists, and below which nothing has the next name; NULL
 * where a symlink is on the way, or `path` was not looked up. */
const struct folder *danger_above(const struct danger *d, const char *path);
/* Forgets the places from this one on. */
void danger_drop(struct danger *d, size_t from);

/* The runtime's own files, wherever they are (danger_own.c). -1 without memory. */
int danger_add_own(struct danger *d, const struct owner *o);

#endif
