/* otlp_record.h - writes a finished record as spans and log records.
 *
 * The run is one span, and each of its phases (set-up, run, tear-down) is a span in it. Every event
 * of the record becomes a log record, except the skill's own output, which is not telemetry. All
 * times are the wall clock of the first line plus the monotonic time since then, so setting the
 * clock back during the run changes nothing. */
#ifndef OTEL_OTLP_RECORD_H
#define OTEL_OTLP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "otel/otel_config.h"
#include "trace/reader.h"
#include "trace/runs.h"

enum otlp_phase { PHASE_SETUP, PHASE_RUN, PHASE_TEARDOWN, PHASES };

/* The facts that must be known before the first span can be written. */
struct otlp_run {
	char id[RUN_ID_SIZE];
	char skill[256];
	int64_t begin_us; /* wall clock */
	int64_t end_us;   /* time of the last line, counted from begin_us */
	bool has[PHASES];
	int64_t from_us[PHASES];
	int64_t to_us[PHASES];
	bool complete; /* the record has its end line */
	bool exited;   /* the skill exited by itself, so `exit_code` is the code that it returned */
	char end[24];
	int64_t exit_code;
	uint64_t denied; /* number of violations that have a line in the record */
	uint8_t trace_id[OTLP_TRACE_ID];
	uint8_t span_id[OTLP_SPAN_ID]; /* id of the span of the run */
	uint8_t phase_id[PHASES][OTLP_SPAN_ID];
};

/* Reads the record once. Returns -1 if the record does not begin with the start of a run. */
int otlp_run_read(struct otlp_run *ret, int fd, const struct otel_config *c);

/* Calls `fn` for every line of a record, up to the first one that cannot be read. */
typedef void otlp_line_fn(void *arg, const struct line *l);
void otlp_each_line(int fd, otlp_line_fn *fn, void *arg);
/* Returns the microseconds since the run began; 0 for a negative value. */
int64_t otlp_mono(const struct line *l);

/* Returns whether an event becomes a log record. */
bool otlp_is_decision(const struct line *l);
bool otlp_is_violation(const struct line *l);
const char *otlp_event_name(const struct line *l);
/* Writes the attributes of an event into an attribute list that the caller has begun. */
void otlp_event_attrs(struct otlp *w, const struct line *l);

/* Writes the whole request with the spans. */
void otlp_write_spans(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                      int fd);
/* Writes one log record, between otlp_logs_begin() and otlp_request_end(). */
void otlp_logs_add(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                   const struct line *l);
uint64_t otlp_nano(const struct otlp_run *run, int64_t mono_us);

#endif
