/* run_limits.c - records which limits a run has reached. */
#include <stdarg.h>
#include <stdio.h>

#include "sandbox/supervise.h"

/* The members of an event that are for programs; 0 and NULL are left out. src/report/limit_text.c
 * makes the words for people from them. */
struct hit {
	const char *limit;  /* as in the manifest */
	uint64_t value;     /* in the unit of the limit, as is `seen` */
	uint64_t seen;      /* how much there was */
	uint64_t refused;   /* how many attempts the kernel has refused */
	const char *stream; /* that was cut */
};

static void put_hit(struct json *j, void *arg)
{
	const struct hit *h = arg;

	json_kstr(j, "limit", h->limit);
	json_kuint(j, "value", h->value);
	if (h->seen > 0) {
		json_kuint(j, "seen", h->seen);
	}
	if (h->refused > 0) {
		json_kuint(j, "refused", h->refused);
	}
	if (h->stream != NULL) {
		json_kstr(j, "stream", h->stream);
	}
}

__attribute__((format(printf, 4, 5))) static void
record_hit(const struct run *r, struct ssb_result *res, struct hit h, const char *fmt, ...)
{
	char message[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	trace_record(r->trace, EV_RESOURCE_LIMIT_HIT, false, message, put_hit, &h);
	res->limits_hit++;
}

static void record_output(const struct run *r, const struct pump pumps[3], struct ssb_result *res)
{
	static const char *const STREAMS[] = { "stdin", "stdout", "stderr" };
	uint64_t limit = r->plan->res.max_output_bytes;

	for (int i = 1; i < 3; i++) {
		if (pumps[i].cut) {
			record_hit(r, res,
			           (struct hit){ "max_output_bytes", limit, pumps[i].total, 0,
			                         STREAMS[i] },
			           "max_output_bytes: %s cut after %llu of %llu bytes", STREAMS[i],
			           (unsigned long long)limit, (unsigned long long)pumps[i].total);
		}
	}
}

static void record_end_by_limit(const struct run *r, struct ssb_result *res)
{
	uint64_t seconds = r->request->max_seconds;
	uint64_t mb = r->plan->res.memory_mb;

	if (res->end == SSB_END_TIMEOUT) {
		record_hit(r, res, (struct hit){ "max_runtime_seconds", seconds, 0, 0, NULL },
		           "max_runtime_seconds: ended after %llu s", (unsigned long long)seconds);
	}
	if (res->end == SSB_END_MEMORY) {
		/* With a cgroup the kernel enforces the limit, and there is no measured value. */
		uint64_t seen_mb = r->memory >> 20;
		char seen[48] = "";
		if (r->memory > 0) {
			snprintf(seen, sizeof(seen), " (%llu MB measured)",
			         (unsigned long long)seen_mb);
		}
		record_hit(r, res, (struct hit){ "memory_mb", mb, seen_mb, 0, NULL },
		           "memory_mb: ended past %llu MB%s", (unsigned long long)mb, seen);
	}
}

/* Without a cgroup nothing counts refused starts, so init reports how many processes it has seen.
 */
static void record_processes(const struct run *r, struct ssb_result *res)
{
	uint64_t most = r->plan->res.max_processes;
	uint64_t refused = r->cgroup != NULL ? cgroup_pids_hits(r->cgroup) : 0;

	if (refused > 0) {
		record_hit(r, res, (struct hit){ "max_processes", most, 0, refused, NULL },
		           "max_processes: %llu starts refused, the limit is %llu",
		           (unsigned long long)refused, (unsigned long long)most);
	} else if (r->tasks >= most) {
		record_hit(r, res, (struct hit){ "max_processes", most, r->tasks, 0, NULL },
		           "max_processes: there were %llu, the limit is %llu",
		           (unsigned long long)r->tasks, (unsigned long long)most);
	}
}

void run_limits_record(const struct run *r, const struct pump pumps[3], struct ssb_result *res)
{
	const struct resources *lim = &r->plan->res;

	record_output(r, pumps, res);
	record_end_by_limit(r, res);
	record_processes(r, res);
	if (observer_files_full(r->observer)) {
		record_hit(r, res,
		           (struct hit){ "max_open_files", lim->max_open_files, 0, 0, NULL },
		           "max_open_files: a process had %llu open files",
		           (unsigned long long)lim->max_open_files);
	}
	if (r->disk_full || observer_disk_full(r->observer)) {
		record_hit(r, res, (struct hit){ "max_disk_mb", lim->max_disk_mb, 0, 0, NULL },
		           "max_disk_mb: the private disk of %llu MB was full",
		           (unsigned long long)lim->max_disk_mb);
	}
}
