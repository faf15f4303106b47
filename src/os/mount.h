/* mount.h - the new mount API, one call per thought. Every function returns
 * an fd or 0, and -1 with errno; fds are CLOEXEC and owned by the caller.
 *
 * A "tree" is a detached mount: an fd that is nowhere in the file system
 * until mount_attach() puts it there. */
#ifndef OS_MOUNT_H
#define OS_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* A private copy of what is mounted at dir_fd/path ("" = dir_fd itself),
 * submounts included. */
int mount_clone(int dir_fd, const char *path);

/* The same of fd itself without its submounts; for root only, since a user
 * could uncover what they hide. */
int mount_clone_one(int fd);

/* Adds MOUNT_ATTR_* to every mount of a tree and cuts it off from the mount
 * events of the host, recursively. With userns_fd >= 0 the tree is idmapped
 * through that user namespace as well. */
int mount_restrict(int tree_fd, uint64_t attrs, int userns_fd);

/* Sets attributes on one attached mount, not on its submounts. */
int mount_set_attrs(int dir_fd, const char *path, uint64_t attrs);

/* Attaches a tree to dir_fd/path ("" = dir_fd itself). */
int mount_attach(int tree_fd, int dir_fd, const char *path);

struct mount_option {
	const char *key;
	const char *value; /* NULL: a flag */
};

/* A new file system of type `fs`; options end with a NULL key. */
int mount_new(const char *fs, const struct mount_option *options, uint64_t attrs);

/* Makes dir_fd the root. The old one lies over it until mount_drop_old_root:
 * one ".." away. Dropping waits for the kernel (about 0.3 ms), so that other
 * work can be done meanwhile by another process. */
int mount_pivot(int dir_fd);
int mount_drop_old_root(void);

#endif
