/* kernel_fs.h - file systems that are an interface of the kernel, not storage for files. */
#ifndef POLICY_KERNEL_FS_H
#define POLICY_KERNEL_FS_H

enum kernel_fs {
	KERNEL_FS_NONE,     /* ordinary files */
	KERNEL_FS_SETTINGS, /* sysfs and similar: facts to read, settings to write */
	KERNEL_FS_LINKS,    /* leads to processes, terminals or namespaces of the host */
};

/* Returns the kind of the file system that contains `fd` (borrowed; O_PATH is enough), or -1
 * with errno. */
int kernel_fs_of(int fd);

#endif
