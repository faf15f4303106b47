/* cgroup_priv.h - shared by cgroup.c and cgroup_make.c. */
#ifndef OS_CGROUP_PRIV_H
#define OS_CGROUP_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "os/cgroup.h"
#include "os/cgroup_layout.h"

#define CGROUP_PREFIX       "skillsandbox-"
#define CGROUP_GOVERNED     "-governed" /* end of the name of a governed group */
#define CGROUP_MAX_ID_BYTES 64

/* One directory of the group: its only one in v2. In v1, hierarchies that are mounted together have
 * one directory together. */
struct node {
	int base_fd;
	int dir_fd;
	int join_fd;          /* open for writing: "tasks" or "cgroup.procs" */
	unsigned controllers; /* 1 << enum cgroup_controller */
};

struct cgroup {
	bool v2;
	bool governed;
	size_t n;
	struct node nodes[CGROUP_PLACES];
	char name[sizeof(CGROUP_PREFIX) + 36 + CGROUP_MAX_ID_BYTES];
	char about[48];
};

/* Returns the directory that has this controller, or NULL. */
const struct node *cgroup_node(const struct cgroup *cg, enum cgroup_controller c);

/* Returns the number after `key` in a file with lines of the form "key number"; 0 if there is
 * none. */
uint64_t cgroup_counter(const struct node *node, const char *file, const char *key);

/* Removes all directories, the last made first, and closes everything. `cg` is empty
 * afterwards. */
void cgroup_undo(struct cgroup *cg);
/* Removes and closes the last directory only. */
void cgroup_drop_last(struct cgroup *cg);

/* Writes `data` with one write(). Returns 0, or -1 with errno. */
int cgroup_write_at(int dir_fd, const char *file, const char *data, size_t len);

/* Reads the first bytes of a file as a string; "" if it cannot be read. */
void cgroup_read_at(int dir_fd, const char *file, char *out, size_t size);

#endif
