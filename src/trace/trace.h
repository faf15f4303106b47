/* trace.h - everything that is recorded about one run.
 *
 * There are two files: the record, trace.jsonl, chained and signed, to which lines are appended
 * as things happen; and the document, trace.json, which is put in place at the end. In both, the
 * plan (what was configured) and the events (what happened) are separate. */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/event.h"
#include "trace/layers.h"
#include "trace/room.h"
#include "base/json.h"
#include "policy/plan.h"
#include "skillsandbox.h"

struct trace;

/* Draws a run id, creates the record under owner->state_dir (or beside the file named by
 * plan->trace_output, never through a symlink) and begins it. `of_run` may be NULL. `*ret` is
 * new; it borrows the plan and the owner's strings until trace_free(). */
int trace_open(const struct ssb_plan *plan, const struct prepared *of_run,
               const struct owner *owner, struct trace **ret, struct ssb_error *err);
/* The record's fd; borrowed. */
int trace_fd(const struct trace *t);
/* Syncs the record so far to the disk. The skill must not start before. */
int trace_sync(struct trace *t, struct ssb_error *err);
/* Makes the run's own directory and the document, which need not exist before the skill starts. A
 * failure shows in trace_broken(). */
void trace_place(struct trace *t);
/* Begins to digest the skill's files while the skill runs; with `at_end`, the skill has ended. */
void trace_digest(struct trace *t, bool at_end);

/* Violations as they happen, for a caller that acts on them. Each one is counted, also if it is
 * folded or finds no room. A class may count more than the violations in it (classes.h). */
struct trace_tally {
	uint64_t total;
	uint64_t kinds[EV_COUNT];
	uint64_t classes[CLASS_COUNT];
};
/* Counts into `tally` from now on (borrowed until trace_free); NULL: does not count. */
void trace_count(struct trace *t, struct trace_tally *tally);
/* The egress counts repeated facts itself and writes them at the end in one event with `tallied`.
 * trace_again() counts them in the tally only; trace_counts() says whether there is one. */
bool trace_counts(const struct trace *t);
void trace_again(struct trace *t, const struct event *e);
/* Classes that follow from others so far: 1 or 0 each. */
void trace_derived(const struct trace *t, uint64_t ret[CLASS_COUNT]);

/* Adds an event. An attempt (an event with a status) that equals an earlier one is only counted. */
void trace_add(struct trace *t, const struct event *e);
/* Short forms. The message may be any bytes; it is cut at MAX_EVENT_TEXT. */
void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len);
void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds a violation: an event that is also in policy_violations. */
void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds an event with members in its `data` object, which `data` writes. */
void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg);
/* Counts n more events of this room that could not be written. */
void trace_dropped(struct trace *t, enum room room, uint64_t n);
/* Adds one line for n events of a kind that have no line of their own; `tallied` as in event.h. */
void trace_not_listed(struct trace *t, enum event_kind kind, bool violation, uint64_t n,
                      bool tallied);
/* Writes the real state of the layers, once they are known. */
void trace_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT]);
/* Notes that the sandbox could not be built, or that it failed. */
void trace_failed(struct trace *t, bool started, const struct ssb_error *why);

/* Lines wait a moment so that several are written at once. Returns when to call trace_tick(), in
 * clock_ms(); 0: no line waits. */
uint64_t trace_due(const struct trace *t);
void trace_tick(struct trace *t);

/* Something could not be written, and so nothing more will be: the run must end. trace_failure()
 * is the reason, which trace_close() returns as well. */
bool trace_broken(const struct trace *t);
const struct ssb_error *trace_failure(const struct trace *t);
/* The time now as events have it: RFC 3339, UTC. */
#define TRACE_TIMESTAMP 32
void trace_timestamp(char out[TRACE_TIMESTAMP]);

size_t trace_violations(const struct trace *t);
/* The classes of the violations, the most severe first: "supply_chain_attack, ...", and the
 * highest severity; both are "" if there is no class (classes.h). */
void trace_classes(const struct trace *t, char *out, size_t size, const char **ret_severity);
const char *trace_id(const struct trace *t);
const char *trace_path(const struct trace *t); /* final path of trace.json */

/* Ends the record (repeats, files, end, signature) and puts the document in place. */
int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err);
void trace_free(struct trace *t); /* without trace_close() the record stays incomplete */

#endif
