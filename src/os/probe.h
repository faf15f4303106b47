/* probe.h - finds out which features work on this machine, by trying each of them.
 *
 * A version number or config file says what should work. But a container, an LSM or a sysctl
 * decides what does work. So each probe uses the feature once, in a forked child if that changes
 * anything, and leaves no trace. The callers judge the results. */
#ifndef OS_PROBE_H
#define OS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The oldest kernel that has every mandatory layer. */
#define PROBE_MIN_MAJOR 5
#define PROBE_MIN_MINOR 15

/* Features that probe_feature() tries. */
enum probe_id {
	PROBE_USERNS, /* a user namespace with working capabilities in it */
	PROBE_MNTNS, /* this and the next ones, to PROBE_MOUNT_SETATTR, are tried inside such a user
	                namespace */
	PROBE_PIDNS,
	PROBE_NETNS,
	PROBE_IPCNS,
	PROBE_UTSNS,
	PROBE_CGROUPNS,
	PROBE_PROC,      /* a new /proc can be mounted, since no part of the old one is hidden */
	PROBE_TMPFS,     /* a tmpfs can be mounted */
	PROBE_OVERLAY,   /* a read-only overlay can be mounted in a user namespace */
	PROBE_MOUNT_API, /* fsopen, fsmount, open_tree, move_mount */
	PROBE_MOUNT_SETATTR,  /* recursive read-only, 5.12 */
	PROBE_SECCOMP,        /* a filter can be loaded */
	PROBE_SECCOMP_NOTIFY, /* a filter with user notification can be loaded */
	PROBE_OPENAT2,
	PROBE_CLOSE_RANGE,
	PROBE_CLONE3,
	PROBE_PIDFD,
	PROBE_COUNT,
};

bool probe_needs_userns(enum probe_id id); /* true if the feature is tried in a user namespace */

/* Returns 0 if the feature works, otherwise the errno of the step that failed. */
int probe_feature(enum probe_id id);

/* Returns 0 and the version of the running kernel, or -1. */
int probe_kernel(unsigned *ret_major, unsigned *ret_minor);
/* Parses a release: "6.1.0-18-amd64" gives 6 and 1. Returns 0, or -1 if it does not begin with two
 * numbers. */
int probe_parse_release(const char *release, unsigned *ret_major, unsigned *ret_minor);
bool probe_version_ok(unsigned major, unsigned minor);

/* Returns 0 if a mount of the file system of `path` can be idmapped (needs root), otherwise an
 * errno. */
int probe_idmap(const char *path);

/* Reads a number from a file of /proc/sys. Returns 0, or -1 with errno. */
int probe_sysctl(const char *path, long *ret_value);
/* Reads the first line of a small file, without its newline. Returns 0, or -1 with errno. */
int probe_line(const char *path, char *ret_line, size_t size);

/* Returns '|' if a program of the host receives core dumps, '@' if a service does, and ' ' if
 * neither does. */
char probe_core_taker(void);

/* Writes the caller's groups that are equivalent to root on the host (docker, disk, ...), separated
 * by commas, to `out`. Returns their number. */
size_t probe_risky_groups(char *out, size_t size);

/* Forks a child that becomes root of its own user namespace with the namespaces `flags`
 * (CLONE_NEW*), and runs `step` there. Returns 0, or the errno of the step or of the set-up;
 * ETIMEDOUT if it takes too long. */
int probe_in_userns(int flags, int (*step)(void));

/* Does the set-up of probe_in_userns() in the calling process. The set-up cannot be undone, so this
 * process should end soon. Returns 0, or -1 with errno. */
int probe_enter_userns(int flags);

#endif
