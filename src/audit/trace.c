/* trace.c - what a trace says; trace_file.c is how it reaches the disk.
 *
 * One JSON document, written front to back so that nothing but the last few
 * KiB is ever in memory:
 *
 *   schema_version, trace_id, run_id, skill_name, skill_version, started_at,
 *   plan       what was configured (the frozen plan; never an event)
 *   events     what happened, in order: {timestamp, kind, message}
 *   completed_at, exit_code
 *   policy_violations  the events that were attempts outside the plan, again
 *   violation_summary  only where there was a violation
 *   layers     {name: {state, detail}} as they really were
 *   result, counters
 *
 * An attempt that was recorded as a violation was denied, hence all_prevented.
 * Events past MAX_TRACE_EVENTS are counted in counters.events_dropped; the
 * last TRACE_RESERVE places are kept for how the run ended, so that a chatty
 * skill cannot push its own end out of the record. */
#include "audit/trace.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "audit/trace_file.h"
#include "audit/trace_limits.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/own.h"

#define EVENT_BYTES ((size_t)6 * MAX_EVENT_TEXT + 256) /* every byte of the text escaped */

struct trace {
	struct trace_file file;
	struct json json; /* into file.out */
	char id[37];
	uint64_t events;
	uint64_t events_dropped;
	uint64_t violations;
	uint64_t violations_kept;
	struct buf scratch; /* one event as JSON */
	struct buf kept;    /* the violations as JSON, with commas between */
};

/* `ending` kinds may use the reserve. */
static const struct {
	const char *name;
	bool ending;
} KINDS[EV_COUNT] = {
	[EV_SKILL_STARTED] = { "skill_started", false },
	[EV_SKILL_COMPLETED] = { "skill_completed", true },
	[EV_SKILL_FAILED] = { "skill_failed", true },
	[EV_DNS_RESOLUTION] = { "dns_resolution", false },
	[EV_NETWORK_POLICY_APPLIED] = { "network_policy_applied", false },
	[EV_NETWORK_POLICY_REMOVED] = { "network_policy_removed", true },
	[EV_NETWORK_EGRESS_ALLOWED] = { "network_egress_allowed", false },
	[EV_NETWORK_EGRESS_BLOCKED] = { "network_egress_blocked", false },
	[EV_FILE_READ] = { "file_read", false },
	[EV_FILE_WRITE] = { "file_write", false },
	[EV_FILE_BLOCKED] = { "file_blocked", false },
	[EV_ENV_VAR_ACCESS] = { "env_var_access", false },
	[EV_SYSCALL_FILTERED] = { "syscall_filtered", false },
	[EV_SYSCALL_BLOCKED] = { "syscall_blocked", false },
	[EV_PROCESS_SPAWNED] = { "process_spawned", false },
	[EV_STDOUT] = { "stdout", false },
	[EV_STDERR] = { "stderr", false },
	[EV_EXIT_CODE] = { "exit_code", true },
	[EV_POLICY_VIOLATION] = { "policy_violation", false },
	[EV_RESOURCE_LIMIT_HIT] = { "resource_limit_hit", true },
};

static const char *const STATES[] = {
	[LAYER_NOT_APPLIED] = "not_applied",
	[LAYER_ON] = "on",
	[LAYER_OFF_BEST_EFFORT] = "off_best_effort",
};

/* RFC 3339 in UTC with microseconds. Not gmtime: that reads the time zone's
 * file first. Days to a date by the 400-year cycle, years beginning in March. */
void trace_timestamp(char out[TRACE_TIMESTAMP])
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_REALTIME, &ts);

	int64_t second = ts.tv_sec % 86400;
	int64_t day = ts.tv_sec / 86400 + 719468;
	int64_t era = day / 146097;
	int64_t doe = day % 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	int64_t month = mp < 10 ? mp + 3 : mp - 9;
	int64_t year = yoe + era * 400 + (month <= 2);

	snprintf(out, TRACE_TIMESTAMP,
	         "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64
	         ".%06ldZ",
	         year, month, doy - (153 * mp + 2) / 5 + 1, second / 3600, second / 60 % 60,
	         second % 60, ts.tv_nsec / 1000);
}

/* A random UUID (version 4). */
static int draw_id(char out[37], struct ssb_error *err)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace", "cannot draw a run id");
	}
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0, o = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10) {
			out[o++] = '-';
		}
		out[o++] = "0123456789abcdef"[b[i] >> 4];
		out[o++] = "0123456789abcdef"[b[i] & 15];
	}
	out[36] = '\0';
	return 0;
}

/* Keeps the buffer under its cap; a failure is remembered by the file. */
static void room_for(struct trace *t, size_t len)
{
	if (t->file.out.len + len > TRACE_BUFFER) {
		(void)trace_file_flush(&t->file);
	}
}

static int write_plan(struct trace *t, const struct ssb_plan *plan, struct ssb_error *err)
{
	auto_free char *text = ssb_plan_json(plan);
	if (text == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	json_key(&t->json, "plan");
	json_raw(&t->json, "", 0);
	size_t left = strlen(text);
	for (const char *p = text; left > 0;) {
		size_t n = left < TRACE_BUFFER / 2 ? left : TRACE_BUFFER / 2;
		room_for(t, n);
		buf_add(&t->file.out, p, n);
		p += n;
		left -= n;
	}
	return 0;
}

static int write_head(struct trace *t, const struct ssb_plan *plan, struct ssb_error *err)
{
	char now[TRACE_TIMESTAMP];
	struct json *j = &t->json;

	trace_timestamp(now);
	json_init(j, &t->file.out, false);
	json_open(j, '{');
	json_kint(j, "schema_version", TRACE_SCHEMA_VERSION);
	json_kstr(j, "trace_id", t->id);
	json_kstr(j, "run_id", t->id);
	json_kstr(j, "skill_name", plan->name);
	json_kstr(j, "skill_version", plan->version);
	json_kstr(j, "started_at", now);
	if (write_plan(t, plan, err) != 0) {
		return -1;
	}
	json_key(j, "events");
	json_open(j, '[');
	return 0;
}

static void trace_freep(struct trace **t)
{
	trace_free(*t);
}

int trace_open(const struct ssb_plan *plan, const struct owner *owner, struct trace **ret,
               struct ssb_error *err)
{
	AUTO(trace_freep) struct trace *t = calloc(1, sizeof(*t));
	if (t == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	t->file = (struct trace_file)TRACE_FILE_NONE;
	buf_init(&t->scratch, EVENT_BYTES);
	buf_init(&t->kept, TRACE_VIOLATION_BYTES);
	if (draw_id(t->id, err) != 0 || trace_file_open(&t->file, plan, owner, t->id, err) != 0 ||
	    write_head(t, plan, err) != 0) {
		return -1;
	}
	*ret = steal_ptr(&t);
	return 0;
}

int trace_sync(struct trace *t, struct ssb_error *err)
{
	return trace_file_sync(&t->file, err);
}

void trace_settle(struct trace *t)
{
	(void)trace_file_settle(&t->file);
}

/* How much of a too long text is kept before the ellipsis: whole characters. */
static size_t cut_at(const char *s, size_t max)
{
	size_t n = max;

	while (n > max - 3 && ((unsigned char)s[n] & 0xc0) == 0x80) {
		n--;
	}
	return ((unsigned char)s[n] & 0xc0) == 0x80 ? max : n;
}

/* The event as a JSON object in t->scratch. */
static void render_event(struct trace *t, enum event_kind kind, const char *message, size_t len,
                         void (*data)(struct json *, void *), void *arg)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	char text[MAX_EVENT_TEXT];
	char now[TRACE_TIMESTAMP];
	struct json j;

	assert(kind < EV_COUNT);
	if (len > MAX_EVENT_TEXT) {
		len = cut_at(message, MAX_EVENT_TEXT - (sizeof(ellipsis) - 1));
		memcpy(text, message, len);
		memcpy(text + len, ellipsis, sizeof(ellipsis) - 1);
		len += sizeof(ellipsis) - 1;
		message = text;
	}
	trace_timestamp(now);
	buf_reset(&t->scratch);
	json_init(&j, &t->scratch, false);
	json_open(&j, '{');
	json_kstr(&j, "timestamp", now);
	json_kstr(&j, "kind", KINDS[kind].name);
	json_key(&j, "message");
	json_strn(&j, message, len);
	if (data != NULL) {
		json_key(&j, "data");
		json_open(&j, '{');
		data(&j, arg);
		json_close(&j, '}');
	}
	json_close(&j, '}');
}

/* Appends the rendered event to the events, or counts it. */
static void store_event(struct trace *t, enum event_kind kind)
{
	uint64_t max = KINDS[kind].ending ? MAX_TRACE_EVENTS : MAX_TRACE_EVENTS - TRACE_RESERVE;

	if (t->events >= max || t->scratch.failed) {
		t->events_dropped++;
		return;
	}
	room_for(t, t->scratch.len + 2);
	buf_addc(&t->file.out, '\n');
	json_raw(&t->json, t->scratch.data, t->scratch.len);
	t->events++;
}

static void store_violation(struct trace *t)
{
	t->violations++;
	if (t->violations_kept >= TRACE_MAX_VIOLATIONS || t->scratch.failed || t->kept.failed ||
	    t->kept.len + t->scratch.len + 2 > TRACE_VIOLATION_BYTES) {
		return;
	}
	buf_adds(&t->kept, t->violations_kept > 0 ? ",\n" : "\n");
	buf_add(&t->kept, t->scratch.data, t->scratch.len);
	t->violations_kept++;
}

void trace_event(struct trace *t, enum event_kind kind, const char *message, size_t len)
{
	render_event(t, kind, message, len, NULL, NULL);
	store_event(t, kind);
}

void trace_record(struct trace *t, enum event_kind kind, bool violation, const char *message,
                  void (*data)(struct json *j, void *arg), void *arg)
{
	render_event(t, kind, message, strlen(message), data, arg);
	store_event(t, kind);
	if (violation) {
		store_violation(t);
	}
}

/* One byte more than a message may have tells render_event() to mark the cut. */
static size_t format_message(char out[MAX_EVENT_TEXT + 2], const char *fmt, va_list ap)
{
	int n = vsnprintf(out, MAX_EVENT_TEXT + 2, fmt, ap);

	return n < 0 ? 0 : n > MAX_EVENT_TEXT ? MAX_EVENT_TEXT + 1 : (size_t)n;
}

void trace_eventf(struct trace *t, enum event_kind kind, const char *fmt, ...)
{
	char message[MAX_EVENT_TEXT + 2];
	va_list ap;

	va_start(ap, fmt);
	size_t len = format_message(message, fmt, ap);
	va_end(ap);
	trace_event(t, kind, message, len);
}

void trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
{
	char message[MAX_EVENT_TEXT + 2];
	va_list ap;

	va_start(ap, fmt);
	size_t len = format_message(message, fmt, ap);
	va_end(ap);
	trace_event(t, kind, message, len);
	store_violation(t);
}

size_t trace_violations(const struct trace *t)
{
	return t->violations;
}

const char *trace_id(const struct trace *t)
{
	return t->id;
}

const char *trace_path(const struct trace *t)
{
	return t->file.path;
}

static void write_violations(struct trace *t)
{
	struct json *j = &t->json;

	json_key(j, "policy_violations");
	json_open(j, '[');
	for (size_t at = 0; at < t->kept.len;) {
		size_t n =
		        t->kept.len - at < TRACE_BUFFER / 2 ? t->kept.len - at : TRACE_BUFFER / 2;
		room_for(t, n);
		buf_add(&t->file.out, t->kept.data + at, n);
		at += n;
	}
	json_close(j, ']');
	room_for(t, TRACE_TAIL_BYTES);
	if (t->violations > 0) {
		json_key(j, "violation_summary");
		json_open(j, '{');
		json_kuint(j, "total_enforcements", t->violations);
		json_key(j, "classifications");
		json_open(j, '[');
		json_close(j, ']');
		json_kbool(j, "all_prevented", true);
		json_key(j, "classes");
		json_open(j, '[');
		json_close(j, ']');
		json_kstr(j, "max_severity", "unclassified");
		json_close(j, '}');
	}
}

static void write_layers(struct json *j, const struct layer_report layers[LAYER_COUNT])
{
	json_key(j, "layers");
	json_open(j, '{');
	for (int i = 0; layers != NULL && i < LAYER_COUNT; i++) {
		json_key(j, layer_name((enum layer_id)i));
		json_open(j, '{');
		json_kstr(j, "state", STATES[layers[i].state]);
		json_kstr(j, "detail", layers[i].detail);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void write_result(struct json *j, const struct ssb_result *r)
{
	json_key(j, "result");
	if (r == NULL) {
		json_null(j);
		return;
	}
	json_open(j, '{');
	json_kstr(j, "end", end_name(r->end));
	json_kint(j, "exit_status", r->exit_status);
	json_kint(j, "signal", r->signal);
	json_kuint(j, "duration_us", r->duration_us);
	json_kuint(j, "stdout_bytes", r->stdout_bytes);
	json_kuint(j, "stderr_bytes", r->stderr_bytes);
	json_kbool(j, "stdout_cut", r->stdout_cut != 0);
	json_kbool(j, "stderr_cut", r->stderr_cut != 0);
	json_close(j, '}');
}

static void write_tail(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                       const struct ssb_result *result)
{
	char now[TRACE_TIMESTAMP];
	struct json *j = &t->json;

	trace_timestamp(now);
	room_for(t, TRACE_TAIL_BYTES);
	buf_addc(&t->file.out, '\n');
	json_close(j, ']');
	json_kstr(j, "completed_at", now);
	json_key(j, "exit_code");
	if (result != NULL) {
		json_int(j, result->exit_status);
	} else {
		json_null(j);
	}
	write_violations(t);
	write_layers(j, layers);
	write_result(j, result);
	json_key(j, "counters");
	json_open(j, '{');
	json_kuint(j, "events", t->events);
	json_kuint(j, "events_dropped", t->events_dropped);
	json_kuint(j, "violations", t->violations);
	json_kuint(j, "violations_dropped", t->violations - t->violations_kept);
	json_close(j, '}');
	json_close(j, '}');
	buf_addc(&t->file.out, '\n');
}

int trace_close(struct trace *t, const struct layer_report layers[LAYER_COUNT],
                const struct ssb_result *result, struct ssb_error *err)
{
	write_tail(t, layers, result);
	return trace_file_publish(&t->file, err);
}

void trace_free(struct trace *t)
{
	if (t == NULL) {
		return;
	}
	trace_file_done(&t->file);
	buf_done(&t->scratch);
	buf_done(&t->kept);
	free(t);
}
