/* document.h - the compatible form of a trace: trace.json, one JSON document, written from
 * beginning to end so that only the last few KiB are in memory.
 *
 *   schema_version, trace_id, run_id, skill_name, skill_version, started_at,
 *   plan       what was configured (the frozen plan; never an event)
 *   events     what happened, in order: {timestamp, kind, message, data}
 *   completed_at, exit_code
 *   policy_violations  the events that were violations, again
 *   violation_summary  only if there was a violation
 *   layers     {name: {state, detail}} as they really were
 *   result, counters
 *
 * Each kind of event has a part of MAX_TRACE_EVENTS and DOCUMENT_EVENT_BYTES (room.h). Events that
 * do not fit that part are only counted, in counters.events_dropped. The record has room for
 * more. */
#ifndef TRACE_DOCUMENT_H
#define TRACE_DOCUMENT_H

#include "trace/classes.h"
#include "trace/event.h"
#include "trace/layers.h"
#include "trace/room.h"
#include "trace/trace_file.h"
#include "base/buf.h"
#include "base/json.h"
#include "policy/plan.h"

struct document {
	struct trace_file *file; /* borrowed */
	struct buf out;          /* not yet written */
	struct json json;        /* into out */
	uint64_t events;
	uint64_t events_dropped;
	struct rooms rooms;
	struct rooms kept_rooms; /* the space that `kept` uses */
	/* number of events with `violation`; each may stand for several attempts */
	uint64_t violations;
	uint64_t violations_kept;
	struct buf kept; /* the violations as JSON, separated by commas */
	struct ssb_error failure;
};

/* One event; `message` and `data` are already JSON. */
struct document_event {
	enum event_kind kind;
	enum room room;
	bool violation;
	const char *time;
	struct bytes message;
	struct bytes data; /* an object; NULL: none */
};

/* The members that are known only at the end. */
struct document_end {
	const char *time;
	const struct layer_report *layers; /* NULL: none were applied */
	const struct ssb_result *result;   /* NULL: not known */
	const struct classes *classes;     /* the classes of all events */
	uint64_t violations;
	uint64_t repeats;
};

void document_init(struct document *d, struct trace_file *file);
void document_done(struct document *d);
void document_begin(struct document *d, const struct ssb_plan *plan, const char *plan_json,
                    const char *id, const char *time);
void document_event(struct document *d, const struct document_event *e);
/* Writes the rest and gives the file its final name. Returns -1 if anything has failed; d->failure
 * is the first failure. */
int document_end(struct document *d, const struct document_end *end);

#endif
