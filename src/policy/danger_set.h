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

/* A place that not even the owner can grant. Its flags omit DANGER_NEVER, which is added when the
 * place is looked up. */
struct never_row {
	struct danger_row row;
	const char *instead; /* what the owner can do instead */
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
	bool unknown; /* an error hides whether the path, or anything in it, exists */
	bool real;    /* the path contains no symlink */
	/* the real path to which this symlink leads; NULL: no symlink, or not known */
	char *led_to;
};

/* The names in one directory, so that its many absent places need no system call. */
struct dir_names {
	char *dir;   /* NULL: not read, because it has too many names or cannot be read */
	char *names; /* each NUL-terminated */
	size_t len;
};

struct danger {
	enum access access; /* ACCESS_READ: without places that are dangerous only to write */
	struct place *places;
	size_t n_places;
	struct folder *folders;
	size_t n_folders;
	/* A symlink is being followed. No second one is followed meanwhile, which bounds the
	 * recursion. */
	bool follows;
	struct object home;
	struct mounts mounts; /* read when first needed */
	struct dir_names listings[3];
	struct string_list stores; /* see danger_take_stores() */
	struct danger *led;        /* see danger_led() */
};

/* Returns where a symlink leads, even if its target does not exist yet; new. NULL with errno. */
char *danger_led_to(const char *path);
/* Computes the target of a symlink from its text alone; new. The target's path may contain further
 * symlinks. The path of the symlink's directory must contain none. Returns NULL if the text is not
 * enough, or on an error. */
char *danger_link_words(const char *link);
/* Adds the place that a symlink leads to, under the symlink's name. Copies both paths. */
int danger_add_link(struct danger *d, const char *link, const char *target, const char *why,
                    unsigned flags);
/* Returns the deepest existing directory above `path`, which must be missing. NULL if a symlink is
 * on the way, if `path` exists, or if the directories above it were not looked up. */
const struct folder *danger_above(const struct danger *d, const char *path);
/* Removes the places with index `from` and higher. */
void danger_drop(struct danger *d, size_t from);

/* Adds the runtime's own files, wherever they are (danger_own.c). Returns -1 without memory. */
int danger_add_own(struct danger *d, const struct owner *o);

#endif
