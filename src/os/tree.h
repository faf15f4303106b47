/* tree.h - everything beneath a directory, in the order of its names: nothing is
 * followed, nothing is opened but directories, and all of it is bounded. */
#ifndef OS_TREE_H
#define OS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct tree_entry {
	const char *path; /* from the directory on: hostile bytes */
	int dir;          /* the directory that it is in; borrowed */
	const char *name; /* in that */
	struct stat st;   /* of a symlink its own */
};

/* Of a directory: false leaves out what is in it. */
typedef bool tree_fn(void *arg, const struct tree_entry *e);

struct tree_caps {
	size_t entries; /* of all directories together */
	size_t depth;
};

/* `dir_fd` is borrowed and may be O_PATH. False: not everything was seen, since there
 * was too much of it, or since a directory could not be read. */
bool tree_walk(int dir_fd, const struct tree_caps *caps, tree_fn *fn, void *arg);

/* Gone with all that is in it, however deep and whatever rights its directories have;
 * what is mounted there stays. No symlink is followed. Both 0, also where nothing is
 * there; -1 with errno: something is left, and all else is gone. */
int tree_remove(int parent_fd, const char *name);
int tree_empty(int dir_fd); /* borrows a directory that can be listed */

#endif
