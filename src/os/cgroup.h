/* cgroup.h - one control group around one run: memory, processes, CPU share.
 *
 * cgroup v2 where a directory is delegated to the caller, else cgroup v1 as
 * root. No policy: whether a run may go without is the caller's decision. */
#ifndef OS_CGROUP_H
#define OS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "skillsandbox.h"

/* 0 leaves that resource alone. */
struct cgroup_limits {
	uint64_t memory_bytes;  /* swap included: none is granted beyond it */
	uint64_t cpu_shares;    /* 2..262144; 1024 is the share of a neighbour */
	uint64_t max_processes; /* threads count */
	bool governed;          /* it is to be frozen and metered, where that can be had */
};

struct cgroup;

#define CGROUP_MAX_JOIN 5

/* Makes "skillsandbox-<pid>-<id>" with the limits in place; `id` is of
 * [A-Za-z0-9_-]. `*ret` is new, ended by cgroup_free(). SSB_E_LAYER with the
 * reason where this machine has none for the caller; what was half made is
 * gone again. Also removes what dead supervisors left behind. */
int cgroup_create(const char *id, const struct cgroup_limits *limits, struct cgroup **ret,
                  struct ssb_error *err);

/* To be inside, a process of one thread joins by itself, after clone: these fds
 * (borrowed; returns how many) are passed to it. A move by another process
 * takes a global lock in the kernel and costs an RCU grace period (up to 15 ms
 * measured). cgroup_join is async-signal-safe, and allowed in any user
 * namespace, because the fds are those that the creator opened. 0, or -1 with
 * errno. */
size_t cgroup_join_fds(const struct cgroup *cg, int ret_fds[CGROUP_MAX_JOIN]);
int cgroup_join(const int *fds, size_t n);

/* Does it weigh CPU time? Where systemd has not enabled that controller beside
 * the caller (services, most user sessions), another mechanism has to. */
bool cgroup_weighs(const struct cgroup *cg);

const char *cgroup_describe(const struct cgroup *cg); /* "cgroup v1: memory, pids, cpu" */

/* How often a process was killed for memory; how often a fork was refused. */
uint64_t cgroup_oom_kills(const struct cgroup *cg);
uint64_t cgroup_pids_hits(const struct cgroup *cg);

/* A new eventfd that becomes readable when the memory limit is hit on v1,
 * where the kernel kills one process and leaves the others. -1 on v2, which
 * ends the whole group by itself, and where it cannot be had. */
int cgroup_oom_eventfd(const struct cgroup *cg);

/* CPU time of all that was ever in it, in microseconds; false: not known. */
bool cgroup_cpu_us(const struct cgroup *cg, uint64_t *ret_us);

/* Stops every process in it where it stands, and lets them go on. It takes a
 * moment: cgroup_is_frozen() says when all of them stand. Only with
 * limits.governed; -1 with errno. */
bool cgroup_freezes(const struct cgroup *cg);
int cgroup_freeze(const struct cgroup *cg, bool frozen);
bool cgroup_is_frozen(const struct cgroup *cg);

/* In v1 a frozen process does not die before it is thawed. A new fd for
 * cgroup_thaw(), which whoever ends the processes then needs; -1: none does. */
int cgroup_thaw_fd(const struct cgroup *cg);
void cgroup_thaw(int fd);
/* Ends all that is in a frozen group of v1 before it thaws it; of v2 nothing
 * is left to do. */
void cgroup_end_frozen(const struct cgroup *cg);

/* Removes what has no process in it any more, without waiting; the rest is for
 * cgroup_free(). Nothing can be counted afterwards. Accepts NULL. */
void cgroup_shed(struct cgroup *cg);

/* Removes the directories and frees. Waits a moment (at most 0.1 s) for the
 * last process to be reaped. Accepts NULL. To be called by the creator only:
 * a forked child just closes its fds. */
void cgroup_free(struct cgroup *cg);

#endif
