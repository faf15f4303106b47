/* path.h - paths as text, and objects as device and inode. */
#ifndef POLICY_PATH_H
#define POLICY_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/limits.h"
#include "policy/plan.h"

/* What a path names is this, whatever the path says. */
struct object {
	dev_t dev;
	ino_t ino;
};

static inline bool object_same(struct object a, struct object b)
{
	return a.dev == b.dev && a.ino == b.ino;
}

/* An object and the directories above it, up to "/". */
struct chain {
	struct object v[MAX_PATH_DEPTH];
	mode_t mode[MAX_PATH_DEPTH];
	size_t n;
};

/* Walks up from an O_PATH fd (borrowed); `path` is its path without
 * symlinks, used where the object itself has no "..". -1 with errno. */
int chain_from(int fd, const char *path, struct chain *ret);
bool chain_has(const struct chain *c, struct object o, size_t from);

/* "~" and "~/x" with the owner's home; anything else unchanged. Returns new. */
char *path_expand(const struct owner *o, const char *path);
/* The other way, for people. Writes into `out`, returns it. */
const char *path_pretty(const struct owner *o, const char *path, char *out, size_t size);

/* What follows `dir` in `path` without its slash; "" if equal; NULL if `path`
 * is neither `dir` nor beneath it. Both absolute and normalised. */
const char *path_beneath(const char *path, const char *dir);
/* Like strcmp, but "/" before every other byte: a directory's contents come
 * directly after it ("/a", "/a/b", "/a-b"). */
int path_order(const char *a, const char *b);
char *path_join(const char *dir, const char *rest); /* returns new */
/* `path` itself where it is absolute. Returns new. */
char *path_from(const char *dir, const char *path);
char *path_parent(const char *path); /* returns new */
bool path_is_top(const char *dir);   /* "/", "/srv", "~"; not "~/notes" */
const char *path_base(const char *path);

/* An absolute path by its words alone: without empty and "." parts, and ".." takes the part
 * before it away. Returns new. */
char *path_words(const char *path);
/* Resolves symlinks as far as the path exists; the rest is appended as it
 * stands, and may not hold "..". Relative to the current directory. Returns
 * new; NULL with errno. */
char *path_real(const char *path);

#endif
