/* cgroup_layout.h - finds the directories of this process in the control group hierarchies.
 *
 * The parser takes texts and returns paths, without I/O, so that every kind of system can be
 * tested. */
#ifndef OS_CGROUP_LAYOUT_H
#define OS_CGROUP_LAYOUT_H

#include <stdbool.h>

#include "base/limits.h"

/* The directories are made in this order (cgroup_make.c). CGROUP_FREEZER and CGROUP_CPUACCT limit
 * nothing: they are the separate hierarchies of v1 that freeze a group and measure its CPU time. */
enum cgroup_controller {
	CGROUP_PIDS,
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_CONTROLLERS,
	CGROUP_FREEZER = CGROUP_CONTROLLERS,
	CGROUP_CPUACCT,
	CGROUP_PLACES,
};

extern const char *const CGROUP_NAMES[CGROUP_PLACES];

/* The caller's own directory in one hierarchy. */
struct cgroup_place {
	bool found;
	bool top; /* `dir` is the mount point itself, so its parent group cannot be reached */
	char dir[MAX_PATH_BYTES];
};

struct cgroup_layout {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_PLACES];
};

/* `mountinfo` is the text of /proc/self/mountinfo, `self` that of /proc/self/cgroup. `found` is
 * false for a hierarchy that is not mounted, or if the caller's group lies outside of the mounted
 * part (because of a bind mount of a subtree, or a cgroup namespace). */
void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret);

/* Reads both files of this machine. Returns 0, or -1 with errno; *ret_unread is then the path
 * (static) of the file that cannot be read. */
int cgroup_locate(struct cgroup_layout *ret, const char **ret_unread);

/* True if `name` is a word of the space-separated list (the text of cgroup.controllers). */
bool cgroup_list_has(const char *list, const char *name);

#endif
