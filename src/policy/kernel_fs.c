/* kernel_fs.c - the table of file systems that are an interface of the kernel. */
#include "policy/kernel_fs.h"

#include <linux/magic.h>
#include <stddef.h>
#include <sys/vfs.h>

#include "base/own.h"

/* No installed header defines it. */
#define MQUEUE_MAGIC 0x19800202UL

static const struct {
	unsigned long magic;
	enum kernel_fs kind;
} KINDS[] = {
	{ PROC_SUPER_MAGIC, KERNEL_FS_LINKS },
	{ DEVPTS_SUPER_MAGIC, KERNEL_FS_LINKS },
	{ NSFS_MAGIC, KERNEL_FS_LINKS },
	{ MQUEUE_MAGIC, KERNEL_FS_LINKS },
	{ SYSFS_MAGIC, KERNEL_FS_SETTINGS },
	{ DEBUGFS_MAGIC, KERNEL_FS_SETTINGS },
	{ TRACEFS_MAGIC, KERNEL_FS_SETTINGS },
	{ SECURITYFS_MAGIC, KERNEL_FS_SETTINGS },
	{ SELINUX_MAGIC, KERNEL_FS_SETTINGS },
	{ CGROUP_SUPER_MAGIC, KERNEL_FS_SETTINGS },
	{ CGROUP2_SUPER_MAGIC, KERNEL_FS_SETTINGS },
	{ BPF_FS_MAGIC, KERNEL_FS_SETTINGS },
	{ EFIVARFS_MAGIC, KERNEL_FS_SETTINGS },
};

int kernel_fs_of(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		if ((unsigned long)fs.f_type == KINDS[i].magic) {
			return KINDS[i].kind;
		}
	}
	return KERNEL_FS_NONE;
}
