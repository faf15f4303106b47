/* cgroup_layout.h - where this process is in the control group hierarchies.
 *
 * The parser takes texts and returns paths, without I/O, so that every kind of system can be
 * tested. */
#ifndef OS_CGROUP_LAYOUT_H
#define OS_CGROUP_LAYOUT_H

#include <stdbool.h>

#include "base/limits.h"

/* In the order in which directories are made; see cgroup_make.c. The places after the
 * controllers limit nothing: v1 freezes and meters in hierarchies of their own. */
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
	bool top; /* it is the root of what is mounted, so that its parent cannot be reached */
	char dir[MAX_PATH_BYTES];
};

struct cgroup_layout {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_PLACES];
};

/* `mountinfo` is the text of /proc/self/mountinfo, `self` that of /proc/self/cgroup. A place
 * that is not mounted, or lies outside of what is mounted (because of a bind of a subtree or
 * a cgroup namespace), is not found. */
void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret);

/* Reads both files of this machine. Returns -1 with errno and the path of the file that
 * cannot be read. */
int cgroup_locate(struct cgroup_layout *ret, const char **ret_unread);

/* Is `name` a word of the space-separated list (cgroup.controllers)? */
bool cgroup_list_has(const char *list, const char *name);

#endif
