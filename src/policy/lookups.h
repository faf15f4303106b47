/* lookups.h - paths that are looked up once each, together with every directory above them. Every
 * run that has a grant waits for these system calls, so some are avoided: a name that is missing in
 * a listed directory needs none. */
#ifndef POLICY_LOOKUPS_H
#define POLICY_LOOKUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/path.h"

/* A path that was looked up. */
struct lookup {
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

/* The names in one directory. */
struct dir_names {
	char *dir;
	char *names; /* each NUL-terminated */
	size_t len;
};

#define MAX_LISTED_DIRS 3
struct lookups {
	struct lookup *v; /* a directory comes before the paths in it */
	size_t n;
	/* A symlink is being followed by its text. No second one is followed meanwhile, which
	 * bounds the recursion. */
	bool following;
	struct dir_names listed[MAX_LISTED_DIRS];
	size_t n_listed;
};

/* Reads the names in the directory home/name, so that absent names in it need no system call. Does
 * nothing if the directory cannot be read or has too many names, and for more than MAX_LISTED_DIRS
 * directories. */
void lookups_list(struct lookups *l, const char *home, const char *name);
/* Returns the lookup of the first `len` bytes of an absolute path, which is made at the first call
 * for it. The result is borrowed, and valid until the next call. NULL without memory. */
const struct lookup *lookups_get(struct lookups *l, const char *path, size_t len);
/* The same for the directory that contains `path`. */
const struct lookup *lookups_parent(struct lookups *l, const char *path);
/* Returns the lookup of the path if it was made already; NULL otherwise. */
const struct lookup *lookups_known(const struct lookups *l, const char *path, size_t len);
/* Returns false only if the names in a directory above `path` were read, and the next component of
 * `path` is not one of them. Makes no system call. */
bool lookups_may_exist(const struct lookups *l, const char *path);
/* Returns false only if the name `path` is certainly missing: an error that hides whether it exists
 * counts as found. If no earlier lookup answers this, asks the file system, and does not keep its
 * answer. */
bool lookups_is_found(const struct lookups *l, const char *path);
/* Returns the deepest existing directory above `path`, which must be missing. NULL if a symlink is
 * on the way, if `path` exists, or if the directories above it were not looked up. */
const struct lookup *lookups_above(const struct lookups *l, const char *path);
void lookups_done(struct lookups *l);

#endif
