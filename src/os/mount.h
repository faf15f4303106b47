/* mount.h - the new mount API, one function per operation. Every function returns an fd or 0, or -1
 * with errno. fds are CLOEXEC and owned by the caller.
 *
 * A "tree" is a detached mount: an fd that is not in the file system until mount_attach() puts it
 * there. */
#ifndef OS_MOUNT_H
#define OS_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns a private copy of the mount at dir_fd/path ("" = dir_fd itself), with its submounts. */
int mount_clone(int dir_fd, const char *path);

/* Returns a copy of the mount in which fd lies, without its submounts. Only root can do this.
 * Otherwise an ordinary user could see files that the submounts hide. */
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

/* Makes a new file system of type `fs` and returns its tree. The options end with a NULL key. */
int mount_new(const char *fs, const struct mount_option *options, uint64_t attrs);

/* mount_pivot() makes dir_fd the root. The old root is mounted over it and can be reached by ".."
 * until mount_drop_old_root(), which takes about 0.3 ms because the kernel waits; other processes
 * can work during that time. */
int mount_pivot(int dir_fd);
int mount_drop_old_root(void);

#endif
