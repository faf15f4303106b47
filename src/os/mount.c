/* mount.c - the calls of the new mount API. */
#include "os/mount.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

int mount_clone(int dir_fd, const char *path)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT;
	if (path[0] == '\0') {
		flags |= AT_EMPTY_PATH;
	}
	return open_tree(dir_fd, path, flags);
}

int mount_clone_one(int fd)
{
	return open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

int mount_restrict(int tree_fd, uint64_t attrs, int userns_fd)
{
	/* Mounts made in the tree do not reach the host, and later mounts of the host do not reach
	 * the tree. */
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)(unsigned)userns_fd;
	}
	return mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

int mount_set_attrs(int dir_fd, const char *path, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };
	return mount_setattr(dir_fd, path, path[0] == '\0' ? AT_EMPTY_PATH : 0, &attr,
	                     sizeof(attr));
}

int mount_attach(int tree_fd, int dir_fd, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH;
	if (path[0] == '\0') {
		flags |= MOVE_MOUNT_T_EMPTY_PATH;
	}
	return move_mount(tree_fd, "", dir_fd, path, flags);
}

int mount_new(const char *fs, const struct mount_option *options, uint64_t attrs)
{
	auto_fd ctx = fsopen(fs, FSOPEN_CLOEXEC);
	if (ctx < 0) {
		return -1;
	}
	for (; options != NULL && options->key != NULL; options++) {
		int r = options->value != NULL
		                ? fsconfig(ctx, FSCONFIG_SET_STRING, options->key, options->value,
		                           0)
		                : fsconfig(ctx, FSCONFIG_SET_FLAG, options->key, NULL, 0);
		if (r != 0) {
			return -1;
		}
	}
	if (fsconfig(ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0) {
		return -1;
	}
	return fsmount(ctx, FSMOUNT_CLOEXEC, (unsigned)attrs);
}

int mount_pivot(int dir_fd)
{
	assert(dir_fd >= 0);
	/* The old root needs no directory of its own: it is mounted over the new one. */
	return fchdir(dir_fd) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ? -1 : 0;
}

int mount_drop_old_root(void)
{
	/* The first chdir() enters the old root, which is mounted over the new one; the second one
	 * enters the new root. */
	return chdir("/") != 0 || umount2(".", MNT_DETACH) != 0 ? -1 : chdir("/");
}
