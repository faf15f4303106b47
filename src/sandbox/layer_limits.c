/* layer_limits.c - sets the resource limits of each process. All processes together are limited by
 * the cgroup or, without one, by the process count of the user namespace and init's watchdog. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "os/probe.h"
#include "sandbox/share.h"
#include "sandbox/stage.h"

static int set_limit(int what, uint64_t value)
{
	struct rlimit old, now = { .rlim_cur = value, .rlim_max = value };

	/* Never raise a limit: the caller's own hard limit may be lower. */
	if (getrlimit((__rlimit_resource_t)what, &old) == 0 && old.rlim_max < now.rlim_max) {
		now.rlim_cur = now.rlim_max = old.rlim_max;
	}
	return setrlimit((__rlimit_resource_t)what, &now);
}

int layer_limit_core(struct stage *s, struct ssb_error *err)
{
	const struct rlimit off = { .rlim_cur = 1, .rlim_max = 1 };
	struct rlimit old;
	int failed = getrlimit(RLIMIT_CORE, &old);

	if (failed == 0 && old.rlim_max == 0) {
		s->core_piped = probe_core_taker() != ' ';
	} else if (failed == 0) {
		failed = setrlimit(RLIMIT_CORE, &off);
	}
	return failed != 0 ? ssb_fail(err, SSB_E_LAYER, errno, "limits", "cannot limit core dumps")
	                   : 0;
}

/* Returns the value of RLIMIT_NPROC. It is one higher than the plan's, because init counts, too.
 * With a cgroup it is two higher: the cgroup must refuse first, because only it counts its
 * refusals. The anchors count, too. Without namespaces it is the plan's value, and the kernel
 * counts all processes of the user. */
static uint64_t process_count(const struct stage *s)
{
	uint64_t beside = !s->config->namespaces ? 0 : s->watchdog ? 1 : 2;

	return s->config->plan->res.max_processes + beside + (s->config->pty ? 2 : 0);
}

int layer_limits(struct stage *s, struct ssb_error *err)
{
	const struct resources *res = &s->config->plan->res;
	/* RLIMIT_DATA helps the watchdog: it limits how much can be allocated between two checks.
	 * RLIMIT_AS would not help: language runtimes reserve far more address space than they
	 * use. */
	uint64_t data = (res->memory_mb << 20) * 2 + (512ULL << 20);

	if (set_limit(RLIMIT_NOFILE, res->max_open_files) != 0 ||
	    set_limit(RLIMIT_NPROC, process_count(s)) != 0 ||
	    set_limit(RLIMIT_MEMLOCK, 8 << 20) != 0 || set_limit(RLIMIT_MSGQUEUE, 819200) != 0 ||
	    set_limit(RLIMIT_SIGPENDING, 1024) != 0 ||
	    (s->watchdog && set_limit(RLIMIT_DATA, data) != 0)) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits",
		                "cannot set the resource limits");
	}
	/* The skill must not raise its priority, even if the caller may. */
	if (set_limit(RLIMIT_NICE, 0) != 0 || set_limit(RLIMIT_RTPRIO, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits",
		                "cannot set the resource limits");
	}
	int now = getpriority(PRIO_PROCESS, 0);
	int nice = s->nice ? share_to_nice(res->cpu_shares)
	                   : 0; /* 0: keep the present value, which root may have set */
	if (nice > now && setpriority(PRIO_PROCESS, 0, nice) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits", "cannot lower the priority");
	}
	if (!s->config->namespaces && (set_limit(RLIMIT_DATA, res->memory_mb << 20) != 0 ||
	                               set_limit(RLIMIT_FSIZE, res->max_disk_mb << 20) != 0)) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits",
		                "cannot set the resource limits");
	}
	if (!s->config->namespaces && s->reports[LAYER_LIMITS].detail[0] == '\0') {
		snprintf(s->reports[LAYER_LIMITS].detail, sizeof(s->reports[LAYER_LIMITS].detail),
		         "rlimits only: memory and file size per process, processes per user");
	}
	if (s->watchdog) {
		snprintf(
		        s->reports[LAYER_LIMITS].detail, sizeof(s->reports[LAYER_LIMITS].detail),
		        "no cgroup: rlimits, process count of the user namespace, memory watchdog");
	}
	if (s->core_piped) {
		size_t len = strlen(s->reports[LAYER_LIMITS].detail);
		snprintf(s->reports[LAYER_LIMITS].detail + len,
		         sizeof(s->reports[LAYER_LIMITS].detail) - len,
		         "; core dumps can go to a program of the host");
	}
	return 0;
}
