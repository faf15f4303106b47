/* trace.h - records everything about one run.
 *
 * There are two files. The record, trace.jsonl, is chained and signed, and lines are appended to it
 * when things happen. The document, trace.json, is put in place at the end. In both, the plan (the
 * configuration) and the events (what happened) are separate. */
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

/* Draws a run id, creates the record and writes its first line. The record is under
 * owner->state_dir, or beside the file that plan->trace_output names (never through a symlink).
 * `of_run` may be NULL. `*ret` is new; it borrows the plan and the owner's strings until
 * trace_free(). */
int trace_open(const struct ssb_plan *plan, const struct prepared *of_run,
               const struct owner *owner, struct trace **ret, struct ssb_error *err);
/* Returns the record's fd, which the caller borrows. */
int trace_fd(const struct trace *t);
/* Syncs the record so far to the disk. The skill must not start before this has succeeded. */
int trace_sync(struct trace *t, struct ssb_error *err);
/* Makes the run's own directory and the document, which need not exist before the skill starts.
 * Failures are reported by trace_broken(). */
void trace_place(struct trace *t);
/* Begins to compute the digests of the skill's files. `at_end` is false while the skill runs, true
 * if it has ended. */
void trace_digest(struct trace *t, bool at_end);

/* Counts violations while the skill runs, for a caller that acts on them. Each violation is
 * counted, even if it is a repeat or does not fit the record. The count of a class may include
 * events that are not violations (classes.h). */
struct trace_tally {
	uint64_t total;
	uint64_t kinds[EV_COUNT];
	uint64_t classes[CLASS_COUNT];
};
/* From now on, violations are counted in `tally` (borrowed until trace_free()). NULL: they are not
 * counted. */
void trace_count(struct trace *t, struct trace_tally *tally);
/* The egress counts repeated facts itself, and adds one event for all of them at the end, with
 * `tallied` set. Until then it calls trace_again() for each repeated fact, which counts the fact
 * only in the tally. trace_counts() returns whether there is a tally. */
bool trace_counts(const struct trace *t);
void trace_again(struct trace *t, const struct event *e);
/* Sets ret[i] to 1 if class i has no events of its own so far, but is derived from other classes
 * (classes.h); otherwise to 0. */
void trace_derived(const struct trace *t, uint64_t ret[CLASS_COUNT]);

/* Adds an event. If an attempt (an event with a status) equals an earlier one, it is only
 * counted. */
void trace_add(struct trace *t, const struct event *e);
/* trace_event() and trace_eventf() add an event that has only a message. The message may be any
 * bytes; it is cut at MAX_EVENT_TEXT. */
void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len);
void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds a violation: an event that is also in policy_violations. */
void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds an event with a `data` object. The function `data` writes the members of the object. */
void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg);
/* Counts `n` more events of this room that could not be written. */
void trace_dropped(struct trace *t, enum room room, uint64_t n);
/* Adds one line that stands for `n` events of this kind. They get no lines of their own. `tallied`
 * is as in event.h. */
void trace_not_listed(struct trace *t, enum event_kind kind, bool violation, uint64_t n,
                      bool tallied);
/* Writes the real state of the layers. Call it when the state is known; later calls do nothing. */
void trace_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT]);
/* Notes that the sandbox could not be built or, if `started`, that it failed later. */
void trace_failed(struct trace *t, bool started, const struct ssb_error *why);

/* Lines are not written at once, but a moment later, several together. trace_due() returns the
 * clock_ms() at which to call trace_tick(); 0: no line waits. */
uint64_t trace_due(const struct trace *t);
void trace_tick(struct trace *t);

/* trace_broken() returns whether something could not be written. If so, nothing more will be
 * written, and the run must end. trace_failure() returns the reason, as trace_close() does. */
bool trace_broken(const struct trace *t);
const struct ssb_error *trace_failure(const struct trace *t);
/* Writes the current time in the format of events: RFC 3339, UTC. */
#define TRACE_TIMESTAMP 32
void trace_timestamp(char out[TRACE_TIMESTAMP]);

size_t trace_violations(const struct trace *t);
/* Writes the classes of the violations, the most severe first, as in "supply_chain_attack, ...",
 * and the highest severity; both are "" if there is no class (classes.h). */
void trace_classes(const struct trace *t, char *out, size_t size, const char **ret_severity);
const char *trace_id(const struct trace *t);
const char *trace_path(const struct trace *t); /* returns the final path of trace.json */

/* Ends the record (lines for repeats, files, end and signature) and puts the document in place. */
int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err);
void trace_free(struct trace *t); /* without trace_close() the record stays incomplete */

#endif
