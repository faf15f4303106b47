/* kernel_fs.h - file systems that are not files but the kernel itself. */
#ifndef POLICY_KERNEL_FS_H
#define POLICY_KERNEL_FS_H

enum kernel_fs {
	KERNEL_FS_NONE,     /* files */
	KERNEL_FS_SETTINGS, /* sysfs and its kin: facts to read, settings to write */
	KERNEL_FS_LINKS,    /* leads to processes, terminals or namespaces of the host */
};

/* Of the file system that an fd (borrowed, O_PATH will do) lies in. -1 with
 * errno. */
int kernel_fs_of(int fd);

#endif
