/* test_session_send.c - sending a ledger to OpenTelemetry collectors: which lines are sent at which
 * time, and as which OTLP fields. tests/e2e/test_session_otel.py tests the sending itself. */
#include <inttypes.h>
#include <string.h>

#include "base/json_read.h"
#include "base/limits.h"
#include "session/ledger_otlp.h"
#include "session/herald.h"
#include "session_tests.h"

#define POLICY  "audit: {export: [{otel: \"http://127.0.0.1:4318\"}]}\n"
#define LEASE   60000
#define MANY    "session: {max_actions: 100000}\n" POLICY
#define LINES   500
#define AT_ONCE 0

static int open_in_2027(void **state)
{
	(void)open_world(state);
	world_now = INT64_C(1800000000) * SECOND;
	return 0;
}

static void good(int rc, const struct ssb_error *err)
{
	if (rc != 0) {
		fail_msg("%s: %s", err->where, err->text);
	}
}

static void become(const char *name, enum session_state to, const char *reason)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	good(session_become(w.ss, world_id(name), to, reason, &d, &err), &err);
	assert_true(d.notify);
}

/* Takes (leases) the next part of the ledger that is due. Returns false if there is none. */
static bool take(struct outbox_item *ret)
{
	struct ssb_error err = { 0 };
	int64_t wait = -2;

	*ret = (struct outbox_item){ 0 };
	good(outbox_wait(w.ss, &wait, &err), &err);
	int got = outbox_take(w.ss, LEASE, ret, &err);
	good(got < 0 ? -1 : 0, &err);
	assert_true(got == 0 || wait == 0); /* if a part is due, the wait must be 0 */
	assert_true(got == 0 || ret->kind == NOTIFY_OTEL);
	return got == 1;
}

static int64_t wait_ms(void)
{
	struct ssb_error err = { 0 };
	int64_t wait = -2;

	good(outbox_wait(w.ss, &wait, &err), &err);
	return wait;
}

static void done(struct outbox_item *item, unsigned status, const char *error, uint64_t retry_ms)
{
	struct ssb_error err = { 0 };

	good(outbox_done(w.ss, item, status, error, retry_ms, &err), &err);
	outbox_item_done(item);
}

static size_t lines_of(const char *body)
{
	size_t n = 0;

	for (; *body != '\0'; body++) {
		n += *body == '\n' ? 1 : 0;
	}
	return n;
}

/* Delivers all parts that are due. Returns the number of lines; *ret_requests is the number of
 * requests. */
static size_t drain(size_t *ret_requests)
{
	struct outbox_item item;
	size_t lines = 0;

	*ret_requests = 0;
	for (; *ret_requests < 100 && take(&item); (*ret_requests)++) {
		lines += item.span ? 0 : item.lines;
		done(&item, 200, NULL, 0);
		world_now += 2 * SECOND;
	}
	return lines;
}

/* ---- which lines ----------------------------------------------------------- */

static void test_each_line_once(void **state)
{
	struct outbox_item item;

	assert_true(world_start("once", NULL, POLICY).notify);
	(void)world_check("once", USD(0.1));
	assert_true(take(&item));
	assert_string_equal(item.session, world_id("once"));
	assert_string_equal(item.url, "http://127.0.0.1:4318");
	assert_false(item.span);
	assert_int_equal(item.lines, 2);
	assert_int_equal(lines_of(item.body), 2);
	assert_non_null(strstr(item.body, "\"session_created\""));
	struct outbox_item other;
	assert_false(take(&other)); /* the only part is already leased */
	done(&item, 200, NULL, 0);
	/* The delivery has added a line to the ledger. For this line alone, no request must be
	 * made. */
	assert_int_equal(world_lines("once", "notification"), 1);
	world_now += 2 * SECOND;
	assert_false(take(&other));
	assert_int_equal(wait_ms(), -1);
	(void)world_check("once", USD(0.1));
	assert_true(take(&item));
	assert_int_equal(item.lines, 1);
	assert_null(strstr(item.body, "notification"));
	done(&item, 202, NULL, 0);
	world_now += 2 * SECOND;
	assert_false(take(&other));
	assert_int_equal(world_lines("once", "notification"), 2);
}

/* At most one request per second is sent, even if the agent acts more often. */
static void test_not_too_often(void **state)
{
	struct outbox_item item;

	world_start("often", NULL, POLICY);
	assert_true(take(&item));
	done(&item, 200, NULL, 0);
	(void)world_check("often", USD(0.01));
	assert_false(take(&item));
	assert_in_range(wait_ms(), 900, 1001);
	world_now += SECOND;
	assert_true(take(&item));
	assert_int_equal(item.lines, 1);
	done(&item, 200, NULL, 0);
	become("often", SESSION_COMPLETED, "");
	world_now += SECOND;
	size_t requests = 0;
	assert_int_equal(drain(&requests), 1);
	assert_int_equal(requests, 2); /* one request for the lines, one for the span */
}

static void test_parts(void **state)
{
	struct outbox_item item;
	uint64_t upto = 0;
	size_t lines = 0;
	size_t parts = 0;

	world_start("parts", NULL, MANY);
	for (int i = 0; i < 1100; i++) {
		(void)world_check("parts", AT_ONCE);
	}
	/* If a collector lacks more than one part, it gets the next part at once, without the usual
	 * pause of a second. */
	while (parts < 3 && take(&item)) {
		assert_in_range(item.lines, 1, LINES);
		assert_true(item.upto > upto && strlen(item.body) <= MAX_SEND_BYTES);
		upto = item.upto;
		lines += item.lines;
		parts++;
		done(&item, 200, NULL, 0);
		world_now += parts == 2 ? SECOND : 0;
	}
	assert_int_equal(lines, 1101);
	assert_int_equal(parts, 3);
	world_now += SECOND;
	become("parts", SESSION_COMPLETED, "");
	(void)drain(&parts);
}

/* A part has a maximum size, so parts with long lines have fewer lines. */
static void test_bytes(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct outbox_item item;
	char details[4000];
	size_t lines = 0;
	size_t parts = 0;

	memset(details, 'x', sizeof(details) - 1);
	details[sizeof(details) - 1] = '\0';
	world_start("bytes", NULL, POLICY);
	for (int i = 0; i < 150; i++) {
		good(session_violation(w.ss, world_id("bytes"), "long", details, &d, &err), &err);
	}
	while (take(&item)) {
		assert_true(strlen(item.body) <= MAX_SEND_BYTES);
		lines += item.lines;
		parts++;
		done(&item, 200, NULL, 0);
		world_now += SECOND;
	}
	assert_int_equal(lines, 151);
	assert_in_range(parts, 3, 4);
	/* The span has no room for all lines as events, but it has the first and the last one. */
	become("bytes", SESSION_KILLED, "enough");
	assert_true(take(&item) && !item.span);
	done(&item, 200, NULL, 0);
	assert_true(take(&item) && item.span);
	assert_true(item.dropped > 0 && item.lines + item.dropped == 152);
	assert_non_null(strstr(item.body, "\"session_killed\""));
	assert_non_null(strstr(item.body, "\"session_created\""));
	done(&item, 200, NULL, 0);
	assert_false(take(&item));
}

/* ---- the end of a session, and later lines ---------------------------------- */

static void test_span_once(void **state)
{
	struct outbox_item item;
	size_t requests = 0;

	world_start("span", NULL, POLICY);
	struct decision d = world_check("span", USD(0.2));
	become("span", SESSION_KILLED, "x");
	assert_true(take(&item) && !item.span);
	assert_int_equal(item.lines, 3); /* the line of the signature is not sent */
	done(&item, 200, NULL, 0);
	assert_true(take(&item) && item.span);
	done(&item, 503, "busy", 1500);
	assert_false(take(&item));
	world_now += 2 * SECOND;
	assert_true(take(&item) && item.span && item.tries == 1);
	done(&item, 200, NULL, 0);
	assert_false(take(&item));
	assert_int_equal(wait_ms(), -1);
	/* A late settlement is sent, but no second span. */
	assert_true(world_settle(d.reservation, USD(0.1)).notify);
	assert_int_equal(drain(&requests), 1);
	assert_int_equal(requests, 1);
	assert_int_equal(wait_ms(), -1);
}

/* ---- failures ------------------------------------------------------------ */

static void test_tried_again(void **state)
{
	struct outbox_item item;
	size_t requests = 0;

	world_start("again", NULL, POLICY);
	for (unsigned i = 0; i < HERALD_TRIES + 4; i++) {
		assert_true(take(&item));
		assert_int_equal(item.tries, i);
		assert_int_equal(item.lines, 1);
		done(&item, 0, "connect: refused", 5000);
		assert_false(take(&item));
		world_now += 5 * SECOND;
	}
	assert_int_equal(world_lines("again", "notification"), HERALD_TRIES);
	(void)world_check("again", USD(0.1));
	assert_int_equal(drain(&requests), 2); /* no line is lost */
	assert_int_equal(requests, 1);
	assert_int_equal(world_lines("again", "notification"), HERALD_TRIES + 1);
	become("again", SESSION_COMPLETED, "");
	(void)drain(&requests);
}

static void test_refused(void **state)
{
	struct outbox_item item;
	size_t requests = 0;

	world_start("refused", NULL, POLICY);
	assert_true(take(&item));
	done(&item, 400, "the collector answered 400", 0);
	auto_free char *text = world_ledger("refused");
	assert_non_null(strstr(text, "\"status\":\"failed\",\"status_code\":400"));
	(void)world_check("refused", USD(0.1));
	world_now += SECOND;
	assert_int_equal(drain(&requests), 1); /* the next line is sent */
	become("refused", SESSION_COMPLETED, "");
	(void)drain(&requests);
}

/* A process has taken a part, and does not report a result. When its lease has ended, another
 * process can take the part. A late report of success by the first process changes nothing. */
static void test_lease(void **state)
{
	struct outbox_item item;
	struct outbox_item again;
	size_t requests = 0;

	world_start("lease", NULL, POLICY);
	assert_true(take(&item));
	world_reopen();
	assert_false(take(&again));
	assert_in_range(wait_ms(), LEASE - 1, LEASE + 1);
	world_now += (LEASE + 1) * INT64_C(1000);
	(void)world_check("lease", USD(0.1));
	assert_true(take(&again));
	assert_int_equal(again.lines, 2);
	assert_memory_equal(again.body, item.body, strlen(item.body));
	done(&again, 200, NULL, 0);
	/* the late report of the first process: no effect */
	done(&item, 200, NULL, 0);
	world_now += SECOND;
	assert_false(take(&item));
	become("lease", SESSION_COMPLETED, "");
	(void)drain(&requests);
}

static void test_two_collectors(void **state)
{
	struct outbox_item a;
	struct outbox_item b;
	size_t requests = 0;

	world_start("two", NULL,
	            "audit: {export: [{otel: \"http://127.0.0.1:1\"}, {otel: "
	            "\"http://127.0.0.1:2\"}]}\n");
	assert_true(take(&a) && take(&b));
	assert_string_not_equal(a.url, b.url);
	done(&a, 200, NULL, 0);
	done(&b, 0, "away", 3600000);
	become("two", SESSION_KILLED, "x");
	world_now += SECOND;
	assert_int_equal(drain(&requests), 1);
	assert_int_equal(requests, 2);
	world_now += 3600 * SECOND;
	assert_int_equal(drain(&requests), 2);
	assert_int_equal(requests, 2);
	assert_int_equal(wait_ms(), -1);
}

static void test_audit_off(void **state)
{
	struct outbox_item item;

	assert_false(world_start("off", NULL,
	                         "audit: {enabled: false, export: [{otel: "
	                         "\"http://127.0.0.1:4318\"}]}\n")
	                     .notify);
	assert_false(world_start("none", NULL, "{}").notify);
	assert_false(take(&item));
}

/* ---- texts ------------------------------------------------------------------ */

#define L(seq, mono, kind, rest)                                                                   \
	"{\"seq\":" #seq ",\"time\":\"2026-11-15T17:00:00.000000Z\",\"mono\":" #mono               \
	",\"kind\":\"" kind "\",\"session_id\":\"s1\",\"agent_id\":\"a<1>\"," rest                 \
	"\"snapshot\":{\"state\":\"alert\",\"spent_usd\":0.250000,\"reserved_usd\":0.000000,"      \
	"\"actions\":3,\"cpu_seconds\":1.500},\"hash\":\"00\"}\n"

static const char *const LEDGER[] = {
	L(0, 0, "session_created", "\"parent\":null,\"budget_limit\":5.000000,"),
	L(1, 10, "action_blocked",
	  "\"action\":\"l\\u0001\",\"code\":\"amount\",\"reason\":\"no\","),
	L(2, 20, "usage", "\"run\":1,\"used\":{},\"violations\":{\"file_blocked\":2},"),
	L(3, 30, "violation", "\"violation_type\":\"pii\",\"cumulative_count\":1,"),
	"this is no line\n",
	L(4, 40, "notification", "\"type\":\"otel\",\"status\":\"sent\","),
	L(5, 50, "notification", "\"type\":\"slack\",\"status\":\"failed\","),
	L(6, 60, "budget_alert", "\"code\":\"alert_at\",\"reason\":\"80 %\","),
	L(7, 70, "session_killed", "\"reason\":\"enough\",\"violation_counts\":{\"pii\":1},"),
	"{\"seq\":8,\"time\":\"x\",\"mono\":70,\"kind\":\"signature\"}\n",
	L(9, 90, "violation", "\"violation_type\":\"late\","),
};

struct words {
	struct json_doc doc;
	const struct json_node *list; /* the list of log records, or of spans */
	char text[65536];
};

static void write_words(struct words *x, bool span)
{
	struct outbox_item item = { .session = "s1", .begun_us = 1000, .span = span, .dropped = 7 };
	struct otel_config c = { .service = "test", .flags = 1 };
	struct otlp writer;
	const char *why = NULL;
	auto_buf out;

	buf_init(&out, sizeof(x->text));
	for (size_t i = 0; i < ARRAY_LEN(LEDGER); i++) {
		buf_adds(&out, LEDGER[i]);
	}
	item.body = buf_steal(&out);
	buf_init(&out, sizeof(x->text));
	otlp_init(&writer, &out, &OTLP_JSON);
	(span ? ledger_write_span : ledger_write_logs)(&writer, &item, &c);
	free(item.body);
	assert_false(out.failed);
	x->doc = (struct json_doc){ 0 };
	memcpy(x->text, out.data, out.len);
	x->text[out.len] = '\0';
	assert_int_equal(json_read(&x->doc, out.data, out.len, &why), 0);
	const struct json_node *n =
	        json_member(&x->doc, json_top(&x->doc), span ? "resourceSpans" : "resourceLogs");
	n = json_member(&x->doc, json_first(&x->doc, n), span ? "scopeSpans" : "scopeLogs");
	x->list = json_member(&x->doc, json_first(&x->doc, n), span ? "spans" : "logRecords");
	assert_non_null(x->list);
}

static const char *text_of(const struct words *x, const struct json_node *n, const char *key)
{
	const char *s = json_string(json_member(&x->doc, n, key), NULL);

	return s != NULL ? s : "";
}

/* Returns the value of an attribute as text; "": not there. */
static const char *attribute(const struct words *x, const struct json_node *n, const char *key)
{
	const struct json_node *list = json_member(&x->doc, n, "attributes");

	for (const struct json_node *a = json_first(&x->doc, list); a != NULL;
	     a = json_next(&x->doc, a)) {
		if (strcmp(text_of(x, a, "key"), key) == 0) {
			const struct json_node *v =
			        json_first(&x->doc, json_member(&x->doc, a, "value"));
			return v->str != NULL ? v->str : "[]";
		}
	}
	return "";
}

static void test_log_records(void **state)
{
	static const struct {
		const char *name;
		const char *seq;
		const char *severity;
		const char *body;
	} WANT[] = {
		{ "session.created", "0", "INFO", "session_created" },
		{ "session.action_blocked", "1", "WARN", "no" },
		{ "session.usage", "2", "INFO", "usage" },
		{ "session.violation", "3", "WARN", "violation" },
		{ "session.notification", "5", "WARN", "notification" },
		{ "session.budget_alert", "6", "WARN", "80 %" },
		{ "session.killed", "7", "ERROR", "enough" },
		{ "session.violation", "9", "WARN", "violation" },
	};
	static struct words x;
	size_t i = 0;

	write_words(&x, false);
	assert_int_equal(x.list->n, ARRAY_LEN(WANT));
	for (const struct json_node *r = json_first(&x.doc, x.list); r != NULL;
	     r = json_next(&x.doc, r), i++) {
		assert_string_equal(text_of(&x, r, "eventName"), WANT[i].name);
		assert_string_equal(attribute(&x, r, "session.ledger.seq"), WANT[i].seq);
		assert_string_equal(text_of(&x, r, "severityText"), WANT[i].severity);
		assert_string_equal(text_of(&x, json_member(&x.doc, r, "body"), "stringValue"),
		                    WANT[i].body);
		assert_string_equal(attribute(&x, r, "session.id"), "s1");
		assert_string_equal(attribute(&x, r, "session.agent"), "a<1>");
		assert_string_equal(attribute(&x, r, "session.state"), "alert");
		assert_string_equal(attribute(&x, r, "session.cost_usd"), "0.250000");
		assert_string_equal(attribute(&x, r, "session.actions"), "3");
		assert_string_equal(attribute(&x, r, "session.cpu_seconds"), "1.500000");
		assert_string_equal(attribute(&x, r, "hash"), "");
	}
	const struct json_node *second = json_next(&x.doc, json_first(&x.doc, x.list));
	assert_string_equal(text_of(&x, second, "timeUnixNano"), "1010000");
	/* the control character is escaped */
	assert_string_equal(attribute(&x, second, "action"), "l\\x01");
	assert_string_equal(attribute(&x, second, "code"), "amount");
	assert_string_equal(attribute(&x, second, "reason"), "no");
	assert_non_null(strstr(x.text, "{\"stringValue\":\"file_blocked=2\"}"));
	json_doc_done(&x.doc);
}

static void test_span(void **state)
{
	static const char *const EVENTS[] = { "session.violation", "session.violation",
		                              "session.budget_alert", "session.killed" };
	static struct words x;
	static struct words logs;
	size_t i = 0;

	write_words(&x, true);
	write_words(&logs, false);
	const struct json_node *span = json_first(&x.doc, x.list);
	const struct json_node *log = json_first(&logs.doc, logs.list);
	assert_int_equal(x.list->n, 1);
	assert_string_equal(text_of(&x, span, "name"), "session");
	assert_string_equal(text_of(&x, span, "startTimeUnixNano"), "1000000");
	assert_string_equal(text_of(&x, span, "endTimeUnixNano"), "1070000");
	/* The span and the log records have the same ids. */
	assert_int_equal(strlen(text_of(&x, span, "traceId")), 32);
	assert_string_equal(text_of(&x, span, "traceId"), text_of(&logs, log, "traceId"));
	assert_string_equal(text_of(&x, span, "spanId"), text_of(&logs, log, "spanId"));
	const struct json_node *events = json_member(&x.doc, span, "events");
	for (const struct json_node *e = json_first(&x.doc, events); e != NULL;
	     e = json_next(&x.doc, e), i++) {
		assert_true(i < ARRAY_LEN(EVENTS));
		assert_string_equal(text_of(&x, e, "name"), EVENTS[i]);
	}
	/* the span lacks lines that came after the session's end */
	assert_int_equal(i, ARRAY_LEN(EVENTS));
	assert_int_equal(json_integer(json_member(&x.doc, span, "droppedEventsCount"), 0), 7);
	const struct json_node *status = json_member(&x.doc, span, "status");
	assert_string_equal(text_of(&x, status, "message"), "enough");
	assert_int_equal(json_integer(json_member(&x.doc, status, "code"), 0), 2);
	assert_string_equal(attribute(&x, span, "budget_limit"), "5.000000");
	assert_string_equal(attribute(&x, span, "error.type"), "session.killed");
	assert_string_equal(attribute(&x, span, "reason"), "enough");
	assert_string_equal(attribute(&x, span, "session.ledger.seq"), "");
	json_doc_done(&x.doc);
	json_doc_done(&logs.doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_line_once), cmocka_unit_test(test_not_too_often),
		cmocka_unit_test(test_parts),          cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_span_once),      cmocka_unit_test(test_tried_again),
		cmocka_unit_test(test_refused),        cmocka_unit_test(test_lease),
		cmocka_unit_test(test_two_collectors), cmocka_unit_test(test_audit_off),
		cmocka_unit_test(test_log_records),    cmocka_unit_test(test_span),
	};

	return ON_EACH_STORE(tests, open_in_2027);
}
