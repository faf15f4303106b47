/* cgroup_layout.h - where this process sits in the control group hierarchies.
 * Text in, paths out: no I/O, so that every kind of system can be tested. */
#ifndef OS_CGROUP_LAYOUT_H
#define OS_CGROUP_LAYOUT_H

#include <stdbool.h>

#include "base/limits.h"

/* In the order in which directories are made; see cgroup.c. Those behind the
 * controllers limit nothing: v1 has the freezer and the clock apart. */
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
	bool top; /* the root of what is mounted: the parent is out of reach */
	char dir[MAX_PATH_BYTES];
};

struct cgroup_layout {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_PLACES];
};

/* `mountinfo` is the text of /proc/self/mountinfo, `self` that of
 * /proc/self/cgroup. What is not mounted, or lies outside of what is mounted
 * (a bind of a subtree, a cgroup namespace), stays not found. */
void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret);

/* Is `name` a word of the space-separated list (cgroup.controllers)? */
bool cgroup_list_has(const char *list, const char *name);

#endif
