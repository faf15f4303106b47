/* trace.h - the record of one run.
 *
 * Streamed to a file beside its final name as it happens, renamed into place
 * at the end: a reader sees a whole document or none. Plan records (what was
 * configured) and events (what happened) are separate arrays. */
#ifndef AUDIT_TRACE_H
#define AUDIT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "policy/plan.h"
#include "skillsandbox.h"

enum event_kind {
	EV_SKILL_STARTED,
	EV_SKILL_COMPLETED,
	EV_SKILL_FAILED,
	EV_DNS_RESOLUTION,
	EV_NETWORK_POLICY_APPLIED,
	EV_NETWORK_POLICY_REMOVED,
	EV_NETWORK_EGRESS_ALLOWED,
	EV_NETWORK_EGRESS_BLOCKED,
	EV_FILE_READ,
	EV_FILE_WRITE,
	EV_FILE_BLOCKED,
	EV_ENV_VAR_ACCESS,
	EV_SYSCALL_FILTERED,
	EV_SYSCALL_BLOCKED,
	EV_PROCESS_SPAWNED,
	EV_STDOUT,
	EV_STDERR,
	EV_EXIT_CODE,
	EV_POLICY_VIOLATION,
	EV_RESOURCE_LIMIT_HIT,
	EV_COUNT,
};

enum layer_state { LAYER_NOT_APPLIED, LAYER_ON, LAYER_OFF_BEST_EFFORT };

struct layer_report {
	enum layer_state state;
	char detail[120]; /* "cgroup v1: memory, pids, cpu", "ABI 7" */
};

struct trace;

/* Creates the run's directory under owner->state_dir (or the file named by
 * plan->trace_output, never through a symlink), draws a run id and writes the
 * head and the plan. `*ret` is new. */
int trace_open(const struct ssb_plan *plan, const struct owner *owner, struct trace **ret,
               struct ssb_error *err);
/* Puts what is written so far on the disk; the skill starts only after it. */
int trace_sync(struct trace *t, struct ssb_error *err);
/* The skill runs: time for what need not be done before. A failure is told by
 * trace_close. */
void trace_settle(struct trace *t);
/* One event. The message may be any bytes; past MAX_EVENT_TEXT it is cut. */
void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len);
void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* A violation: an event that also stands in policy_violations. */
void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The same with members for the event's `data` object, which `data` writes. */
void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg);
/* The time of an event that would be written now: RFC 3339, UTC. */
#define TRACE_TIMESTAMP 32
void trace_timestamp(char out[TRACE_TIMESTAMP]);
size_t trace_violations(const struct trace *t);
const char *trace_id(const struct trace *t);
const char *trace_path(const struct trace *t); /* final path of trace.json */
/* Writes the tail (layers, exit code, violations, counters) and puts it in place. */
int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err);
void trace_free(struct trace *t); /* without trace_close: leaves the unfinished file */

#endif
