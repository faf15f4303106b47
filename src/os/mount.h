/* mount.h - the new mount API, one function per operation. Every function returns an fd or 0, or -1
 * with errno. fds are CLOEXEC and owned by the caller.
 *
 * A "tree" is a detached mount: an fd that is not in the file system until mount_attach() puts it
 * there. */
#ifndef OS_MOUNT_H
#define OS_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* A private copy of the mount at dir_fd/path ("" = dir_fd itself), with its submounts. */
int mount_clone(int dir_fd, const char *path);

/* A copy of the mount of fd without its submounts. Only for root: a user could see what the
 * submounts hide. */
int mount_clone_one(int fd);

/* Adds MOUNT_ATTR_* to every mount of a tree and disconnects it from mount events of the host,
 * recursively. With userns_fd >= 0 the tree is also idmapped by that user namespace. */
int mount_restrict(int tree_fd, uint64_t attrs, int userns_fd);

/* Sets attributes on one attached mount, not on its submounts. */
int mount_set_attrs(int dir_fd, const char *path, uint64_t attrs);

/* Attaches a tree to dir_fd/path ("" = dir_fd itself). */
int mount_attach(int tree_fd, int dir_fd, const char *path);

struct mount_option {
	const char *key;
	const char *value; /* NULL: an option without a value */
};

/* A new file system of type `fs`. The options end with a NULL key. */
int mount_new(const char *fs, const struct mount_option *options, uint64_t attrs);

/* mount_pivot() makes dir_fd the root. The old root covers it, reachable by "..", until
 * mount_drop_old_root(). Dropping waits about 0.3 ms for the kernel; another process can work
 * during that time. */
int mount_pivot(int dir_fd);
int mount_drop_old_root(void);

#endif
