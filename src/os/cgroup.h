/* cgroup.h - a control group for one run: memory, processes, share of the CPU.
 *
 * cgroup v2 is used if a directory is delegated to the caller, otherwise cgroup v1 if the caller
 * is root. The caller decides whether a run may start without a control group. */
#ifndef OS_CGROUP_H
#define OS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "skillsandbox.h"

/* A limit of 0 means no limit. */
struct cgroup_limits {
	uint64_t memory_bytes;  /* memory and swap together */
	uint64_t cpu_shares;    /* 2 to 262144; 1024 is the share of an ordinary group */
	uint64_t max_processes; /* threads count */
	bool governed;          /* if possible, the group can be frozen and its CPU time read */
};

struct cgroup;

#define CGROUP_MAX_JOIN 5

/* Makes the group "skillsandbox-<pid>-<id>" with its limits; `id` consists of [A-Za-z0-9_-]. *ret
 * is new and must be freed with cgroup_free(). If the caller cannot have a group on this machine,
 * fails with SSB_E_LAYER and the reason, and leaves nothing behind. Also removes groups that dead
 * supervisors left. */
int cgroup_create(const char *id, const struct cgroup_limits *limits, struct cgroup **ret,
                  struct ssb_error *err);

/* cgroup_join_fds() fills ret_fds with borrowed fds and returns their number. A single-threaded
 * process gives them to cgroup_join() after clone() and so joins the group; cgroup_join() returns
 * 0, or -1 with errno. If another process moved it into the group, the kernel would take a global
 * lock and wait for an RCU grace period (up to 15 ms measured). cgroup_join() is async-signal-safe
 * and works in any user namespace, because the creator of the group opened the fds. */
size_t cgroup_join_fds(const struct cgroup *cg, int ret_fds[CGROUP_MAX_JOIN]);
int cgroup_join(const int *fds, size_t n);

/* True if the group limits the share of CPU time. systemd does not enable the cpu controller for
 * services and most user sessions. If the result is false, the caller needs another mechanism. */
bool cgroup_weighs(const struct cgroup *cg);

const char *cgroup_describe(const struct cgroup *cg); /* "cgroup v1: memory, pids, cpu" */

/* cgroup_oom_kills() returns how often a process was killed because of the memory limit, and
 * cgroup_pids_hits() how often a fork was refused. */
uint64_t cgroup_oom_kills(const struct cgroup *cg);
uint64_t cgroup_pids_hits(const struct cgroup *cg);

/* For v1, where the kernel kills only one process at the memory limit: returns a new eventfd that
 * becomes readable when the limit is reached. Returns -1 on v2, where the kernel kills the whole
 * group, and if the kernel lacks the feature. */
int cgroup_oom_eventfd(const struct cgroup *cg);

/* Sets *ret_us to the CPU time, in microseconds, of all processes that were ever in the group.
 * Returns false if it is not known. */
bool cgroup_cpu_us(const struct cgroup *cg, uint64_t *ret_us);

/* cgroup_freezes() returns true if the group can be frozen; in v1 this is possible only with
 * cgroup_limits.governed. cgroup_freeze() stops or resumes all processes in the group; it returns
 * 0, or -1 with errno. Stopping takes a moment: cgroup_is_frozen() returns true when all of them
 * have stopped. */
bool cgroup_freezes(const struct cgroup *cg);
int cgroup_freeze(const struct cgroup *cg, bool frozen);
bool cgroup_is_frozen(const struct cgroup *cg);

/* In v1 a killed process does not die as long as it is frozen. Returns a new fd for cgroup_thaw(),
 * with which a process thaws the group after killing its members; -1 if thawing is not needed. */
int cgroup_thaw_fd(const struct cgroup *cg);
void cgroup_thaw(int fd);
/* Kills all processes in a frozen group of v1, then thaws it. Does nothing on v2. */
void cgroup_end_frozen(const struct cgroup *cg);

/* Removes the directories that have no process any more, without waiting. cgroup_free() removes the
 * others. The counters of the group cannot be read afterwards. Accepts NULL. */
void cgroup_shed(struct cgroup *cg);

/* Removes the directories and frees the group. Waits up to 0.1 s for the last process to be reaped.
 * Accepts NULL. Only the process that made the group may call it. A child that it forked must only
 * close its copies of the fds. */
void cgroup_free(struct cgroup *cg);

#endif
