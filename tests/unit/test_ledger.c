/* test_ledger.c - the ledger writes the events of the egress into a trace: in order, and with a
 * limited number of lines. */
#include "egress/ledger.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"

static char directory[] = "/tmp/test-ledger-XXXXXX";
static char path[PATH_MAX];
static struct egress_rule rules[] = { { .domain = { .s = (char *)"api.example.com", .line = 7 } } };
static struct ssb_plan plan = { .name = "weather",
	                        .version = "1.0.0",
	                        .workdir = "/skill",
	                        .home = "/home/u",
	                        .trace_output = path,
	                        .egress = rules };

struct world {
	struct trace *trace;
	struct ledger *ledger;
};

static struct world begin(void)
{
	struct owner owner = { .home = "/home/u", .state_dir = directory };
	struct ssb_error err = { 0 };
	struct world w = { 0 };

	snprintf(path, sizeof(path), "%s/trace.json", directory);
	assert_int_equal(trace_open(&plan, NULL, &owner, &w.trace, &err), 0);
	plan.n_egress = 1; /* set after trace_open(), which would write the rule into the trace */
	w.ledger = ledger_new(&plan);
	assert_non_null(w.ledger);
	return w;
}

/* Ends the ledger and the trace. Returns the trace as new text. */
static char *end(struct world *w)
{
	struct ssb_result result = { 0 };
	struct ssb_error err = { 0 };
	char *text = calloc(1, 16 << 20);

	ledger_close(w->ledger, w->trace);
	ledger_free(w->ledger);
	plan.n_egress = 0;
	assert_int_equal(trace_close(w->trace, NULL, &result, &err), 0);
	trace_free(w->trace);
	auto_file in = fopen(path, "re");
	assert_non_null(in);
	assert_non_null(text);
	assert_true(fread(text, 1, (16 << 20) - 1, in) > 0);
	(void)unlink(path);
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	/* Count only in the events: the trace has each violation a second time, in
	 * "policy_violations". */
	const char *stop = strstr(text, "\"policy_violations\"");
	assert_non_null(stop);
	for (const char *p = text; (p = memmem(p, (size_t)(stop - p), what, strlen(what))) != NULL;
	     p++) {
		n++;
	}
	return n;
}

static struct egress_event event(enum egress_kind kind, const char *name, const char *reason)
{
	struct egress_event e = { .kind = kind, .port = 443, .protocol = PROTOCOL_TLS };

	snprintf(e.name, sizeof(e.name), "%s", name);
	e.reason = reason_from(reason);
	return e;
}

static void take(struct world *w, struct egress_event e)
{
	ledger_take(w->ledger, &e, w->trace);
}

static void connection_has_two_events(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");

	e.connection = 5;
	take(&w, e);
	e.kind = EGRESS_CARRIED;
	e.bytes_out = 11;
	e.bytes_in = 22;
	take(&w, e);
	auto_free char *text = end(&w);
	assert_non_null(strstr(text, "\"message\":\"tls api.example.com:443 open ok\""));
	assert_non_null(strstr(text, "\"message\":\"tls api.example.com:443 closed ok\""));
	assert_int_equal(count(text, "\"connection\":5"), 2);
	/* The rule is also in the totals of the destination; the bytes are in these and in the
	 * totals of the run. */
	assert_int_equal(count(text, "\"rule\":\"api.example.com\",\"rule_line\":7"), 3);
	assert_int_equal(count(text, "\"bytes_out\":11,\"bytes_in\":22"), 3);
	assert_int_equal(count(text, "lost"), 0);
	assert_non_null(strstr(text, "{\"connections\":1,\"blocked\":0,"));
}

static void lost_ones_are_told(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");

	for (e.connection = 1; e.connection <= 3; e.connection++) {
		take(&w, e);
	}
	e.connection = 2;
	e.kind = EGRESS_DENIED;
	e.reason = REASON_OTHER_HOST;
	take(&w, e);
	auto_free char *text = end(&w);
	assert_int_equal(count(text, "\"state\":\"open\""), 3);
	assert_int_equal(count(text, "\"state\":\"closed\""), 3);
	assert_int_equal(count(text, "\"reason\":\"broker_lost\""), 2);
	/* once in the totals of the destination, once in those of the run */
	assert_int_equal(count(text, "\"lost\":2"), 2);
	assert_int_equal(count(text, "\"reason\":\"other_host\""), 1);
}

/* The bytes of a connection count for the destination of its first event, even if its last event
 * names another one. */
static void totals_follow_the_connection(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");

	e.dialled.b[15] = 1;
	e.connection = 1;
	take(&w, e);
	e.kind = EGRESS_CARRIED;
	e.dialled.b[15] = 2;
	e.bytes_out = 10;
	take(&w, e);
	auto_free char *text = end(&w);
	assert_int_equal(count(text, "\"kind\":\"network_egress_total\""), 1);
	assert_int_equal(
	        count(text, "\"address_dialled\":\"::1\",\"connections\":1,\"bytes_out\":10"), 1);
}

/* A destination is a rule, a name, a port and an address. Each has one line with its totals at the
 * end. Above the cap, all other destinations share one line. Together, all lines have the traffic
 * of the run. */
static void destinations_have_totals(void **state)
{
	for (unsigned over = 0; over < 3; over++) {
		struct world w = begin();
		const unsigned different = LEDGER_TOTALS + over;

		for (unsigned i = 0; i < 3 * different; i++) {
			struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");
			e.dialled.b[0] = 0x20;
			e.dialled.b[14] = (uint8_t)(i % different >> 8);
			e.dialled.b[15] = (uint8_t)(i % different);
			e.shown[3] = (char)i; /* after the end of the text: no difference */
			e.connection = i + 1;
			take(&w, e);
			e.kind = i % 2 == 0 ? EGRESS_CARRIED : EGRESS_DENIED;
			e.bytes_out = 10;
			e.bytes_in = 1;
			take(&w, e);
		}
		auto_free char *text = end(&w);
		assert_int_equal(count(text, "\"kind\":\"network_egress_total\""),
		                 LEDGER_TOTALS + (over > 0));
		assert_int_equal(count(text, "\"connections\":3,\"bytes_out\":30,\"bytes_in\":3"),
		                 LEDGER_TOTALS + (over == 1));
		assert_int_equal(count(text, "\"message\":\"other destinations, in total\","
		                             "\"data\":{\"reason\":\"not_listed\""),
		                 over > 0);
		assert_int_equal(count(text, "\"connections\":6,\"bytes_out\":60,\"bytes_in\":6"),
		                 over == 2);
		/* The line for all other destinations names no rule, because they may belong to
		 * several. */
		assert_int_equal(count(text, "\"reason\":\"not_listed\",\"connections\""),
		                 over > 0);
	}
}

/* 100,000 connections fill the trace's room for events of connections. The totals of each
 * destination are still recorded. */
static void totals_survive_a_flood(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");

	for (unsigned i = 0; i < 100000; i++) {
		e.connection = i + 1;
		e.kind = EGRESS_OPENED;
		take(&w, e);
		e.kind = EGRESS_CARRIED;
		e.bytes_out = 7;
		take(&w, e);
	}
	e = event(EGRESS_OPENED, "quiet.example", "ok");
	e.connection = 100001;
	take(&w, e);
	e.kind = EGRESS_CARRIED;
	e.bytes_out = 127;
	take(&w, e);
	auto_free char *text = end(&w);
	assert_int_equal(count(text, "tls quiet.example:443, in total"), 1);
	assert_int_equal(count(text, "\"connections\":1,\"bytes_out\":127,\"bytes_in\":0"), 1);
	assert_int_equal(count(text, "\"connections\":100000,\"bytes_out\":700000"), 1);
	assert_int_equal(count(text, "\"connections\":100001,\"blocked\":0"), 1);
}

static void repeats_are_counted(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_UNKNOWN, "evil.test", "not_declared");

	for (unsigned i = 0; i < 1000; i++) {
		e.micros = i;
		e.shown[20] = (char)i; /* after the end of the text: no difference */
		take(&w, e);
	}
	take(&w, event(EGRESS_UNKNOWN, "other.test", "not_declared"));
	e = event(EGRESS_MALFORMED, "", "malformed");
	e.count = 40;
	take(&w, e);
	take(&w, e);
	auto_free char *text = end(&w);
	/* two events have it three times each: in message, name and remedy */
	assert_int_equal(count(text, "evil.test"), 6);
	assert_int_equal(count(text, "not_declared, 1000 times"), 1);
	assert_int_equal(count(text, "\"count\":1000,\"first\":\"20"), 1);
	assert_int_equal(count(text, "other.test"), 3);
	assert_int_equal(count(text, "\"count\":80"), 1);
	assert_non_null(strstr(text, "\"blocked\":1081"));
	/* The total counts every attempt, also repeats that have no line. */
	assert_non_null(strstr(text, "\"total_enforcements\":1081"));
	assert_non_null(strstr(text, "\"violations_dropped\":0"));
}

/* At most LEDGER_FACTS different facts of one kind get their own lines. All further facts of this
 * kind share one line. */
static void facts_are_bounded(void **state)
{
	for (unsigned over = 0; over < 2; over++) {
		struct world w = begin();
		char name[32];

		for (unsigned i = 0; i < LEDGER_FACTS + over; i++) {
			snprintf(name, sizeof(name), "x%u.evil.test", i);
			take(&w, event(EGRESS_UNKNOWN, name, "not_declared"));
		}
		/* Facts of another kind have a cap of their own. */
		take(&w, event(EGRESS_DENIED, "api.example.com", "no_sni"));
		auto_free char *text = end(&w);
		assert_int_equal(count(text, "evil.test:443"), LEDGER_FACTS);
		assert_int_equal(count(text, "\"reason\":\"not_listed\",\"count\":1"), over);
		assert_int_equal(count(text, "no_sni"), 2);
	}
}

/* The facts above the cap are counted, separately for violations and for other facts. */
static void beyond_is_counted(void **state)
{
	struct world w = begin();
	char name[32];

	for (unsigned i = 0; i < LEDGER_FACTS + 7; i++) {
		snprintf(name, sizeof(name), "x%u.example.com", i);
		take(&w, event(EGRESS_DENIED, name, "timeout"));
	}
	auto_free char *text = end(&w);
	assert_int_equal(count(text, "not_listed, 7 times"), 1);
	assert_non_null(strstr(text, "\"violations\":0"));

	w = begin();
	for (unsigned i = 0; i < LEDGER_FACTS; i++) {
		snprintf(name, sizeof(name), "x%u.example.com", i);
		take(&w, event(EGRESS_DENIED, name, "timeout"));
	}
	for (unsigned i = 0; i < 5; i++) {
		take(&w, event(EGRESS_DENIED, "a.example.com", i < 2 ? "timeout" : "no_sni"));
	}
	free(text);
	text = end(&w);
	assert_int_equal(count(text, "not_listed, 2 times"), 1);
	assert_int_equal(count(text, "not_listed, 3 times"), 1);
	assert_non_null(strstr(text, "\"violations\":3"));
}

static void lying_broker_is_bounded(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");

	for (unsigned i = 0; i < 2 * MAX_CONNECTIONS_CAP; i++) {
		e.connection = i + 1;
		take(&w, e);
		e.connection = 1; /* the same connection again */
		take(&w, e);
	}
	e.kind = (enum egress_kind)77;
	take(&w, e);
	e.kind = EGRESS_CARRIED;
	e.connection = 999999; /* a connection that was never opened */
	e.rule = 12345;
	take(&w, e);
	auto_free char *text = end(&w);
	assert_true(count(text, "\"kind\":\"network_egress_allowed\"") <= MAX_TRACE_EVENTS);
	/* However full the trace is, it has room for the totals. */
	assert_non_null(strstr(text, "\"connections\":16384"));
}

static int setup(void **state)
{
	return mkdtemp(directory) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const LEFT[] = { "trace.jsonl", "trace.key", "trace.pub" };
	int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(LEFT); i++) {
		(void)unlinkat(fd, LEFT[i], 0);
	}
	(void)close(fd);
	return rmdir(directory);
}

/* The bytes of a connection are counted before it ends. The totals of the trace have the same
 * numbers. */
static void moved_bytes_are_known(void **state)
{
	struct world w = begin();
	struct egress_event e = event(EGRESS_OPENED, "api.example.com", "ok");
	struct egress_event moved = { .kind = EGRESS_MOVED, .bytes_out = 700, .bytes_in = 30 };
	uint64_t out, in;

	e.connection = 1;
	take(&w, e);
	take(&w, moved);
	ledger_bytes(w.ledger, &out, &in);
	assert_int_equal(out, 700);
	assert_int_equal(in, 30);
	moved.bytes_out = 5; /* a faulty broker reports less than before: ignored */
	take(&w, moved);
	e.kind = EGRESS_CARRIED;
	e.bytes_out = 800;
	e.bytes_in = 20;
	take(&w, e);
	ledger_bytes(w.ledger, &out, &in);
	assert_int_equal(out, 800);
	assert_int_equal(in, 30);
	auto_free char *text = end(&w);
	assert_int_equal(count(text, "\"kind\":\"network_egress_allowed\""), 2);
	assert_non_null(strstr(text, "\"bytes_out\":800,\"bytes_in\":30}"));
}

/* The trace gets repeated events only at its end. A tally counts each of them immediately, and only
 * once. */
static void repeats_are_tallied_at_once(void **state)
{
	struct world w = begin();
	struct trace_tally tally = { 0 };
	struct egress_event e = event(EGRESS_UNKNOWN, "evil.example", "not_declared");

	trace_count(w.trace, &tally);
	take(&w, e);
	assert_int_equal(tally.total, 1);
	take(&w, e);
	e.count = 5;
	take(&w, e);
	assert_int_equal(tally.total, 7);
	assert_int_equal(tally.kinds[EV_NETWORK_EGRESS_BLOCKED], 7);
	/* They count for their class once the skill has tried to get credentials. */
	assert_int_equal(tally.classes[CLASS_DATA_EXFILTRATION], 0);
	trace_add(w.trace, &(struct event){ .kind = EV_FILE_BLOCKED,
	                                    .status = STATUS_DENIED,
	                                    .violation = true,
	                                    .op = OP_OPEN,
	                                    .path = { "/etc/shadow", 11 },
	                                    .mode = MODE_READ,
	                                    .reason = REASON_CREDENTIAL_STORE });
	assert_int_equal(tally.classes[CLASS_CREDENTIAL_HARVESTING], 1);
	assert_int_equal(tally.classes[CLASS_DATA_EXFILTRATION], 7);
	for (int i = 0; i < LEDGER_FACTS + 10; i++) { /* more than the ledger lists one by one */
		snprintf(e.name, sizeof(e.name), "n%d.example", i);
		e.count = 3;
		take(&w, e);
	}
	assert_int_equal(tally.total, 8 + 3 * (LEDGER_FACTS + 10));
	ledger_close(w.ledger, w.trace);
	assert_int_equal(tally.total, 8 + 3 * (LEDGER_FACTS + 10));
	assert_int_equal(trace_violations(w.trace), tally.total);
	free(end(&w));
}

static void attempts_are_tallied(void **state)
{
	struct world w = begin();
	struct trace_tally tally = { 0 };
	uint64_t derived[CLASS_COUNT];
	static const char key[] = "/home/u/.ssh/id_rsa";
	struct event e = { .kind = EV_FILE_BLOCKED,
		           .status = STATUS_DENIED,
		           .violation = true,
		           .op = OP_OPEN,
		           .mode = MODE_READ,
		           .path = { key, sizeof(key) - 1 },
		           .reason = REASON_CREDENTIAL_STORE };

	trace_add(w.trace, &e); /* not in the tally: trace_count() was not called yet */
	trace_count(w.trace, &tally);
	for (int i = 0; i < 4; i++) {
		trace_add(w.trace, &e); /* repeats of the event above */
	}
	trace_eventf(w.trace, EV_FILE_READ, "harmless");
	assert_int_equal(tally.total, 4);
	assert_int_equal(tally.kinds[EV_FILE_BLOCKED], 4);
	assert_int_equal(tally.classes[CLASS_CREDENTIAL_HARVESTING], 4);
	trace_derived(w.trace, derived);
	assert_int_equal(derived[CLASS_CREDENTIAL_EXFILTRATION], 0);
	take(&w, event(EGRESS_UNKNOWN, "evil.example", "not_declared"));
	trace_derived(w.trace, derived);
	assert_int_equal(derived[CLASS_CREDENTIAL_EXFILTRATION], 1);
	assert_int_equal(derived[CLASS_SUPPLY_CHAIN_ATTACK], 1);
	assert_int_equal(derived[CLASS_CREDENTIAL_HARVESTING], 0);
	free(end(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moved_bytes_are_known),
		cmocka_unit_test(repeats_are_tallied_at_once),
		cmocka_unit_test(attempts_are_tallied),
		cmocka_unit_test(connection_has_two_events),
		cmocka_unit_test(lost_ones_are_told),
		cmocka_unit_test(totals_follow_the_connection),
		cmocka_unit_test(destinations_have_totals),
		cmocka_unit_test(totals_survive_a_flood),
		cmocka_unit_test(repeats_are_counted),
		cmocka_unit_test(facts_are_bounded),
		cmocka_unit_test(lying_broker_is_bounded),
		cmocka_unit_test(beyond_is_counted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
