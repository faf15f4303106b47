/* path.h - paths as text, and objects as device and inode. */
#ifndef POLICY_PATH_H
#define POLICY_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/limits.h"
#include "policy/plan.h"

/* The identity of an object, whatever its path. */
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

/* Walks up from an O_PATH fd (borrowed) to "/". `path` is its path without symlinks; it is needed
 * for an object that has no "..", such as a file. Returns -1 with errno. */
int chain_from(int fd, const char *path, struct chain *ret);
bool chain_has(const struct chain *c, struct object o, size_t from);

/* Expands "~" and "~/x" to the owner's home; leaves other paths unchanged. Returns new. */
char *path_expand(const struct owner *o, const char *path);
/* The reverse of path_expand(), for people. Writes into `out` and returns it. */
const char *path_pretty(const struct owner *o, const char *path, char *out, size_t size);

/* Returns what follows `dir` in `path`, without its slash; "" if they are equal; NULL if `path`
 * is neither `dir` nor beneath it. Both must be absolute and normalised. */
const char *path_beneath(const char *path, const char *dir);
/* Orders like strcmp, but "/" before every other byte, so that a directory's contents follow it
 * directly ("/a", "/a/b", "/a-b"). */
int path_order(const char *a, const char *b);
char *path_join(const char *dir, const char *rest); /* returns new */
/* Like path_join(), but returns `path` itself if it is absolute. Returns new. */
char *path_from(const char *dir, const char *path);
char *path_parent(const char *path); /* returns new */
bool path_is_top(const char *dir);   /* true for "/", "/srv", "~"; false for "~/notes" */
const char *path_base(const char *path);

/* Normalises an absolute path as text, without looking at the file system: drops empty and "."
 * parts, and ".." removes the part before it. Returns new. */
char *path_words(const char *path);
/* Resolves symlinks as far as the path exists and appends the rest unchanged. A relative path
 * begins at the current directory. Returns new; NULL with errno, also if the rest contains "..". */
char *path_real(const char *path);
/* Returns where a symlink leads, even if its target does not exist yet; new. NULL with errno. */
char *path_link_real(const char *link);
/* Computes the target of a symlink from its text alone; new. The target's path may contain further
 * symlinks. The path of the symlink's directory must contain none. Returns NULL if the text is not
 * enough, or on an error. */
char *path_link_text(const char *link);

#endif
