/* otlp_record.h - a finished record as spans and log records.
 *
 * One span for the run, one in it for each phase (set-up, run, tear-down), and
 * a log record for every event of the record but the skill's own output, which
 * is nobody's telemetry. Times are those of the monotonic clock, counted from
 * the first line's wall clock: a clock that was set back moves nothing. */
#ifndef OTEL_OTLP_RECORD_H
#define OTEL_OTLP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "otel/otlp_env.h"
#include "trace/reader.h"
#include "trace/runs.h"

enum otlp_phase { PHASE_SETUP, PHASE_RUN, PHASE_TEARDOWN, PHASES };

/* What has to be known before the first span can be written. */
struct otlp_run {
	char id[RUN_ID_SIZE];
	char skill[256];
	int64_t begin_us; /* wall clock */
	int64_t end_us;   /* since then; of the last line */
	bool has[PHASES];
	int64_t from_us[PHASES];
	int64_t to_us[PHASES];
	bool complete; /* it has an end */
	char end[24];
	int64_t exit_code;
	uint64_t denied; /* attempts outside the plan that have a line */
	uint8_t trace_id[OTLP_TRACE_ID];
	uint8_t span_id[OTLP_SPAN_ID]; /* of the run */
	uint8_t phase_id[PHASES][OTLP_SPAN_ID];
};

/* Reads the record once. -1: there is no run in it. */
int otlp_run_read(struct otlp_run *ret, int fd, const struct otel_config *c);

/* Every line of a record, until one cannot be read. */
typedef void otlp_line_fn(void *arg, const struct line *l);
void otlp_each_line(int fd, otlp_line_fn *fn, void *arg);
/* Microseconds since the run began; never less than nothing. */
int64_t otlp_mono(const struct line *l);
uint64_t otlp_nano(const struct otlp_run *run, int64_t mono_us);

/* An event that becomes a log record. */
bool otlp_is_decision(const struct line *l);
bool otlp_is_violation(const struct line *l);
const char *otlp_event_name(const struct line *l);
/* The attributes of such an event, into an open list. */
void otlp_event_attrs(struct otlp *w, const struct line *l);
/* One value of the record as an attribute, by its type; nothing for what is
 * empty, null or an object. */
void otlp_attr_node(struct otlp *w, const char *key, const struct json_doc *doc,
                    const struct json_node *n);

/* The resource and the scope that both kinds of request begin with. */
void otlp_write_resource(struct otlp *w, const struct otel_config *c);
void otlp_write_scope(struct otlp *w);

/* The whole request with the spans. */
void otlp_write_spans(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                      int fd);

/* ---- the parts of requests, whatever they tell of ------------------------ */

/* A request with log records, or spans: begin, as many as wanted, end. */
void otlp_logs_begin(struct otlp *w, const struct otel_config *c);
void otlp_spans_begin(struct otlp *w, const struct otel_config *c);
void otlp_request_end(struct otlp *w);

enum otlp_severity { OTLP_DEBUG, OTLP_INFO, OTLP_WARN, OTLP_ERROR };

/* All borrowed. */
struct otlp_log {
	uint64_t nano;
	enum otlp_severity severity;
	const uint8_t *trace_id;
	const uint8_t *span_id;
	const char *time; /* as the line has it */
	const char *name;
};

/* Body and attributes follow, then close. */
void otlp_log_begin(struct otlp *w, const struct otlp_log *log, const struct otel_config *c);

struct otlp_span {
	const char *name;
	const uint8_t *trace_id;
	const uint8_t *id;
	const uint8_t *parent; /* NULL: none */
	bool remote;           /* the parent is another program's */
	uint64_t from_nano;
	uint64_t to_nano;
};

/* Attributes and events follow, those that were left out, the status, then close. */
void otlp_span_begin(struct otlp *w, const struct otlp_span *s, const struct otel_config *c);
void otlp_span_dropped(struct otlp *w, uint64_t n);
void otlp_span_status(struct otlp *w, bool good, const char *message);

void otlp_logs_add(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                   const struct line *l);

#endif
