/* tree.h - visits everything beneath a directory, in the order of names. Symlinks are not followed,
 * only directories are opened, and the number of entries and the depth are limited. */
#ifndef OS_TREE_H
#define OS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct tree_entry {
	const char *path; /* relative to the top directory; may contain any bytes */
	int dir;          /* the directory that contains it; borrowed */
	const char *name; /* its name in `dir` */
	struct stat st;   /* attributes; if the entry is a symlink, those of the link itself */
};

/* Called for each entry. If it returns false for a directory, the content of the directory is
 * skipped. */
typedef bool tree_fn(void *arg, const struct tree_entry *e);

struct tree_caps {
	size_t entries; /* most entries in all directories together */
	size_t depth;
};

/* `dir_fd` is borrowed and may be O_PATH. Returns false if not everything was visited: there were
 * too many entries, or a directory could not be read. */
bool tree_walk(int dir_fd, const struct tree_caps *caps, tree_fn *fn, void *arg);

/* tree_remove() removes `name` and everything in it; tree_empty() removes only the content. The
 * depth is not limited, and directories without permissions are removed, too. Mount points are
 * kept; symlinks are not followed. Both return 0, even if there was nothing to remove. If something
 * cannot be removed, they remove everything else and return -1 with errno. */
int tree_remove(int parent_fd, const char *name);
int tree_empty(int dir_fd); /* borrows a directory that is open for reading */

#endif
