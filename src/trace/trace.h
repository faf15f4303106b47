/* trace.h - everything that is written down of one run.
 *
 * Two files: the record, trace.jsonl, chained and signed, appended as things
 * happen; and the document, trace.json, put in place at the end. Plan (what
 * was configured) and events (what happened) are separate in both. */
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

/* Draws a run id, creates the record under owner->state_dir (or beside the
 * file named by plan->trace_output, never through a symlink) and begins it.
 * `of_run` may be NULL. `*ret` is new; it borrows the plan and the owner's strings until
 * trace_free(). */
int trace_open(const struct ssb_plan *plan, const struct prepared *of_run,
               const struct owner *owner, struct trace **ret, struct ssb_error *err);
/* The record as it is written; borrowed. */
int trace_fd(const struct trace *t);
/* Puts the record so far on the disk; the skill starts only after it. */
int trace_sync(struct trace *t, struct ssb_error *err);
/* Gives the trace its own directory and its document: what need not be there
 * before the skill. A failure shows in trace_broken(). */
void trace_place(struct trace *t);
/* Begins to digest the skill's files, beside it; `at_end`: nothing runs any more. */
void trace_digest(struct trace *t, bool at_end);

/* Violations as they come in, for somebody who acts on them: every one, also
 * those that are folded or find no room. A class has more than the violations
 * of it: what classes.h counts. */
struct trace_tally {
	uint64_t total;
	uint64_t kinds[EV_COUNT];
	uint64_t classes[CLASS_COUNT];
};
/* From now on into `tally` (borrowed until trace_free); NULL: nobody counts. */
void trace_count(struct trace *t, struct trace_tally *tally);
/* Facts that the egress counts by itself, and tells at the end in one event
 * with `tallied`: for the tally alone. */
bool trace_counts(const struct trace *t);
void trace_again(struct trace *t, const struct event *e);
/* Classes that follow from others, as of now: 1 or 0. */
void trace_derived(const struct trace *t, uint64_t ret[CLASS_COUNT]);

/* One event. An attempt (its status says so) that equals an earlier one is
 * counted only. */
void trace_add(struct trace *t, const struct event *e);
/* Short forms. The message may be any bytes; past MAX_EVENT_TEXT it is cut. */
void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len);
void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* A violation: an event that also stands in policy_violations. */
void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The same with members for the event's `data` object, which `data` writes. */
void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg);
/* So many more of this room were seen, and could not be written. */
void trace_dropped(struct trace *t, enum room room, uint64_t n);
/* One line for so many of a kind that have none of their own; `tallied` as in event.h. */
void trace_not_listed(struct trace *t, enum event_kind kind, bool violation, uint64_t n,
                      bool tallied);
/* The layers as they are, once they are known. */
void trace_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT]);
/* The sandbox could not be built, or broke. */
void trace_failed(struct trace *t, bool started, const struct ssb_error *why);

/* Lines wait a moment for others. When to call trace_tick(), in clock_ms();
 * 0: nothing waits. */
uint64_t trace_due(const struct trace *t);
void trace_tick(struct trace *t);

/* Something could not be written, and nothing will be any more: the run is to
 * end. Why is what trace_close() will say. */
bool trace_broken(const struct trace *t);
const struct ssb_error *trace_failure(const struct trace *t);
/* The time of an event that would be written now: RFC 3339, UTC. */
#define TRACE_TIMESTAMP 32
void trace_timestamp(char out[TRACE_TIMESTAMP]);

size_t trace_violations(const struct trace *t);
/* What they amount to, the most severe first: "supply_chain_attack, ...", and
 * the highest severity; both "" where there is no class (classes.h). */
void trace_classes(const struct trace *t, char *out, size_t size, const char **ret_severity);
const char *trace_id(const struct trace *t);
const char *trace_path(const struct trace *t); /* final path of trace.json */

/* Ends the record (repeats, files, end, signature) and puts the document in
 * place. */
int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err);
void trace_free(struct trace *t); /* without trace_close: leaves it incomplete */

#endif
