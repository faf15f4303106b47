/* probe.h - what this kernel and machine can do, found by trying.
 *
 * A version number or a config file says what should work; a container, an
 * LSM or a sysctl decides what does. So each probe makes the attempt itself,
 * in a forked child where it would change anything, and leaves no trace.
 * Nothing here has policy: the callers judge. */
#ifndef OS_PROBE_H
#define OS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The oldest kernel on which every mandatory layer exists. */
#define PROBE_MIN_MAJOR 5
#define PROBE_MIN_MINOR 15

/* Features that are there or not. Each is tried by probe_feature(). */
enum probe_id {
	PROBE_USERNS, /* a user namespace with working capabilities in it */
	PROBE_MNTNS,  /* the others inside such a user namespace */
	PROBE_PIDNS,
	PROBE_NETNS,
	PROBE_IPCNS,
	PROBE_UTSNS,
	PROBE_CGROUPNS,
	PROBE_PROC,           /* a fresh /proc can be mounted (no masked /proc outside) */
	PROBE_TMPFS,          /* a tmpfs can be mounted */
	PROBE_OVERLAY,        /* a read-only overlay can be mounted in a user namespace */
	PROBE_MOUNT_API,      /* fsopen, fsmount, open_tree, move_mount */
	PROBE_MOUNT_SETATTR,  /* recursive read-only, 5.12 */
	PROBE_SECCOMP,        /* a filter can be loaded */
	PROBE_SECCOMP_NOTIFY, /* with user notification */
	PROBE_OPENAT2,
	PROBE_CLOSE_RANGE,
	PROBE_CLONE3,
	PROBE_PIDFD,
	PROBE_COUNT,
};

bool probe_needs_userns(enum probe_id id); /* it is tried inside a user namespace */

/* 0 if the feature works, otherwise the errno of the step that failed. */
int probe_feature(enum probe_id id);

/* 0 and the running kernel's version, or -1. */
int probe_kernel(unsigned *ret_major, unsigned *ret_minor);
/* "6.1.0-18-amd64" -> 6, 1. -1 if it does not begin with two numbers. */
int probe_parse_release(const char *release, unsigned *ret_major, unsigned *ret_minor);
bool probe_version_ok(unsigned major, unsigned minor);

/* 0 if a mount of the file system that holds `path` can be given other
 * owners (needs root), otherwise an errno. */
int probe_idmap(const char *path);

/* Reads a number from a file of /proc/sys. -1 with errno if there is none. */
int probe_sysctl(const char *path, long *ret_value);
/* Reads the first line of a small file, without its newline. */
int probe_line(const char *path, char *ret_line, size_t size);

/* A program ('|') or a service ('@') of the host takes core dumps; ' ': neither. */
char probe_core_taker(void);

/* Groups of the caller that are as good as root on the host (docker, disk,
 * ...), comma-separated into `out`; returns how many. */
size_t probe_risky_groups(char *out, size_t size);

/* Forks, makes the child root of a user namespace of its own together with
 * the namespaces `flags` (CLONE_NEW*), runs fn there, and returns 0 or the
 * errno that fn or the set-up ended with. Bounded in time (ETIMEDOUT). */
int probe_in_userns(int flags, int (*fn)(void *arg), void *arg);

/* The set-up of it, for a process that is a throw-away already: 0 or -1 with
 * errno. As far as it goes, it cannot be undone. */
int probe_enter_userns(int flags);

#endif
