/* test_session.c - sessions in their store. They behave like those of an existing session engine of
 * another project, without its security holes. The tests run on SQLite, and also on PostgreSQL if
 * SSB_TEST_POSTGRES names a server. Time, states and trees are in test_session_states.c, the ledger
 * is in test_session_ledger.c. */
#include <stdio.h>
#include <string.h>

#include "session_tests.h"

/* ---- the order of the checks --------------------------------------------- */

static void test_known_order(void **state)
{
	static const struct {
		const char *name;
		int64_t later_s;
		micros spend[4]; /* costs of actions before; 0: no more */
		micros estimate;
		bool allowed;
		const char *code;
		enum session_state after;
	} CASES[] = {
		{ "good", 0, { 0 }, USD(0.5), true, "ok", SESSION_ACTIVE },
		{ "zero", 0, { 0 }, 0, true, "ok", SESSION_ACTIVE },
		{ "duration-at", 60, { 0 }, USD(0.1), true, "ok", SESSION_ACTIVE },
		{ "duration", 61, { 0 }, USD(0.1), false, "max_duration", SESSION_EXPIRED },
		{ "duration-first", 61, { 0 }, USD(9), false, "max_duration", SESSION_EXPIRED },
		{ "actions", 0, { 1, 1, 1 }, USD(0.1), false, "max_actions", SESSION_KILLED },
		{ "actions-first", 0, { 1, 1, 1 }, USD(9), false, "max_actions", SESSION_KILLED },
		{ "per-action-at", 0, { 0 }, USD(0.6), true, "ok", SESSION_ACTIVE },
		{ "per-action",
		  0,
		  { 0 },
		  USD(0.6) + 1,
		  false,
		  "max_cost_per_action",
		  SESSION_ACTIVE },
		{ "budget-at", 0, { USD(0.5) }, USD(0.5), true, "alert_at", SESSION_ALERT },
		{ "budget",
		  0,
		  { USD(0.5) },
		  USD(0.5) + 1,
		  false,
		  "max_cost_per_session",
		  SESSION_KILLED },
		{ "alert-below", 0, { USD(0.5) }, USD(0.3) - 1, true, "ok", SESSION_ACTIVE },
		{ "alert", 0, { USD(0.5) }, USD(0.3), true, "alert_at", SESSION_ALERT },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		world_now = 1000 * SECOND;
		world_start(CASES[i].name, NULL, SMALL);
		for (size_t k = 0; CASES[i].spend[k] != 0; k++) {
			struct decision d = world_check(CASES[i].name, CASES[i].spend[k]);
			assert_true(d.verdict.allowed);
			world_settle(d.reservation, CASES[i].spend[k]);
		}
		world_now += CASES[i].later_s * SECOND;
		struct decision d = world_check(CASES[i].name, CASES[i].estimate);
		assert_int_equal(d.verdict.allowed, CASES[i].allowed);
		assert_string_equal(session_code_name(d.verdict.code), CASES[i].code);
		assert_int_equal(d.after.state, CASES[i].after);
		assert_int_equal(world_get(CASES[i].name).state, CASES[i].after);
		assert_int_equal(d.reservation != 0, CASES[i].allowed);
		assert_int_equal(d.changed, CASES[i].after != SESSION_ACTIVE);
	}
	world_now = 0;
}

static void test_unknown_and_over(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	assert_int_equal(session_check(w.ss, world_id("nobody"), "x", 1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_int_equal(d.verdict.code, VERDICT_NONE);
	world_start("over", NULL, SMALL);
	err = (struct ssb_error){ 0 };
	assert_int_equal(
	        session_become(w.ss, world_id("over"), SESSION_COMPLETED, "done", &d, &err), 0);
	assert_int_equal(d.after.state, SESSION_COMPLETED);
	d = world_check("over", 1);
	assert_false(d.verdict.allowed);
	assert_string_equal(session_code_name(d.verdict.code), "session_over");
	assert_non_null(strstr(d.verdict.reason, "done"));
}

/* ---- security holes of the existing engine, closed here -------------------- */

static void test_overspending_acts(void **state)
{
	world_start("overspend", NULL, SMALL);
	struct decision d = world_check("overspend", USD(0.1));
	d = world_settle(d.reservation, USD(50));
	assert_true(d.changed);
	assert_int_equal(d.state, SESSION_KILLED);
	assert_int_equal(d.verdict.act, ACT_KILL);
	assert_int_equal(d.grace_ms, 5000);
	assert_int_equal(d.after.spent, USD(50));
	assert_false(world_check("overspend", 0).verdict.allowed);
}

static void test_on_exceed(void **state)
{
	static const struct {
		const char *act;
		bool allowed;
		enum session_state after;
		bool told;
	} CASES[] = {
		{ "log", true, SESSION_ALERT, true },      { "alert", true, SESSION_ALERT, true },
		{ "block", false, SESSION_ACTIVE, false }, { "pause", false, SESSION_PAUSED, true },
		{ "kill", false, SESSION_KILLED, true },
	};
	char yaml[256];

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char name[32];
		snprintf(name, sizeof(name), "exceed-%s", CASES[i].act);
		snprintf(yaml, sizeof(yaml),
		         "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 9\n"
		         "  on_exceed: %s\nkill_switch:\n  notify:\n"
		         "    - webhook: http://127.0.0.1:1/x\n",
		         CASES[i].act);
		world_start(name, NULL, yaml);
		struct decision d = world_check(name, USD(2));
		assert_int_equal(d.verdict.allowed, CASES[i].allowed);
		assert_int_equal(d.after.state, CASES[i].after);
		assert_int_equal(d.notify, CASES[i].told);
	}
}

static void test_kill_switch_off(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("noswitch", NULL,
	            "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 9\n"
	            "kill_switch:\n  enabled: false\n");
	d = world_check("noswitch", USD(2));
	assert_false(d.verdict.allowed);
	assert_int_equal(d.verdict.act, ACT_BLOCK);
	assert_int_equal(d.after.state, SESSION_ACTIVE);
	/* If the policy switches the kill switch off, a kill by the owner still works, without a
	 * grace period. */
	assert_int_equal(session_become(w.ss, world_id("noswitch"), SESSION_KILLED, "", &d, &err),
	                 0);
	assert_int_equal(d.state, SESSION_KILLED);
	assert_int_equal(d.grace_ms, 0);
}

static void test_amounts(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("amounts", NULL, SMALL);
	assert_int_equal(session_check(w.ss, world_id("amounts"), "x", -1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_check(w.ss, world_id("amounts"), "x", MAX_MICROS + 1, &d, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	d = world_check("amounts", USD(0.5));
	int64_t r = d.reservation;
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_settle(w.ss, r, MAX_MICROS + 1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	assert_int_equal(world_get("amounts").reserved, USD(0.5));
	assert_int_equal(world_get("amounts").spent, 0);
	/* The largest amount can be stored, and a sum above it does not wrap around. */
	d = world_settle(r, MAX_MICROS);
	assert_int_equal(d.after.spent, MAX_MICROS);
	assert_int_equal(d.state, SESSION_KILLED);
}

static void test_id_is_used_once(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_policy p = { 0 };

	world_start("once", NULL, SMALL);
	d = world_check("once", USD(0.5));
	world_settle(d.reservation, USD(0.5));
	assert_int_equal(session_policy_init(&p, &err), 0);
	struct session_request req = { .id = world_id("once"), .policy = &p };
	assert_int_equal(session_start(w.ss, &req, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	assert_int_equal(world_get("once").spent, USD(0.5));
	/* An id cannot be used again after its session has ended. */
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_become(w.ss, req.id, SESSION_KILLED, "x", &d, &err), 0);
	assert_int_equal(session_start(w.ss, &req, &d, &err), -1);
	assert_int_equal(world_get("once").state, SESSION_KILLED);
	/* A session without an id gets a random one. */
	err = (struct ssb_error){ 0 };
	req.id = NULL;
	assert_int_equal(session_start(w.ss, &req, &d, &err), 0);
	assert_true(session_id_valid(d.session));
	session_policy_done(&p);
}

/* Invalid ids are refused as a session's and as an agent's id. An id of SESSION_ID bytes is too
 * long; one byte less is accepted. */
static void test_ids_that_are_none(void **state)
{
	static const char *const NONE[] = { "",    ".",   "..",  "-a",  "_a",       ".a",   "a/b",
		                            "a b", "a\n", "a:b", "a*b", "\xc3\xa4", "a\x1b" };
	char edge[SESSION_ID + 1];
	struct session_policy p = { 0 };
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	assert_int_equal(session_policy_init(&p, &err), 0);
	memset(edge, 'a', sizeof(edge));
	memcpy(edge, w.prefix, strlen(w.prefix));
	edge[SESSION_ID] = '\0';
	for (size_t i = 0; i <= ARRAY_LEN(NONE); i++) {
		const char *bad = i < ARRAY_LEN(NONE) ? NONE[i] : edge;
		const struct session_request reqs[] = { { .id = bad, .policy = &p },
			                                { .agent = bad, .policy = &p } };
		for (size_t k = 0; k < ARRAY_LEN(reqs); k++) {
			err = (struct ssb_error){ 0 };
			if (session_start(w.ss, &reqs[k], &d, &err) == 0) {
				fail_msg("taken as %s: '%s'", k == 0 ? "id" : "agent", bad);
			}
			assert_int_equal(err.code, SSB_E_USAGE);
		}
		err = (struct ssb_error){ 0 };
		assert_int_equal(session_check(w.ss, bad, "x", 0, &d, &err), -1);
		assert_int_equal(err.code, SSB_E_USAGE);
	}
	edge[SESSION_ID - 1] = '\0';
	err = (struct ssb_error){ 0 };
	const struct session_request good = { .id = edge, .agent = edge, .policy = &p };
	assert_int_equal(session_start(w.ss, &good, &d, &err), 0);
	session_policy_done(&p);
}

static void test_reservations_hold(void **state)
{
	size_t allowed = 0;

	world_start("parallel", NULL, "budget:\n  max_cost_per_session: 1\n  on_exceed: block\n");
	for (int i = 0; i < 10; i++) {
		allowed += world_check("parallel", USD(0.4)).verdict.allowed ? 1 : 0;
	}
	assert_int_equal(allowed, 2);
	assert_int_equal(world_get("parallel").reserved, USD(0.8));
	/* Actions that are never settled count, too. */
	assert_int_equal(world_get("parallel").actions, 2);
}

/* An action has cost more than the budget, and on_exceed is "block": the session continues, and the
 * owner gets exactly one message. */
static void test_overspending_is_told(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("overspent", NULL,
	            "budget:\n  max_cost_per_session: 1\n  on_exceed: block\n"
	            "kill_switch:\n  notify:\n    - webhook: http://127.0.0.1:1/x\n");
	static const micros COSTS[] = { USD(0.3), USD(50), USD(0.3) };
	int64_t reserved[ARRAY_LEN(COSTS)];
	for (size_t i = 0; i < ARRAY_LEN(COSTS); i++) {
		reserved[i] = world_check("overspent", USD(0.2)).reservation;
	}
	for (size_t i = 0; i < ARRAY_LEN(COSTS); i++) {
		assert_int_equal(session_settle(w.ss, reserved[i], COSTS[i], &d, &err), 0);
		assert_int_equal(d.notify, i == 1); /* i == 1 is the first to exceed the budget */
		assert_int_equal(d.after.state, i < 1 ? SESSION_ACTIVE : SESSION_ALERT);
	}
	assert_int_equal(world_lines("overspent", "budget_alert"), 1);
}

static void test_threshold_alerts(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	static const struct {
		bool told;
		enum session_state after;
	} WANT[] = { { false, SESSION_ACTIVE }, { true, SESSION_ALERT }, { false, SESSION_ALERT } };

	world_start("threshold", NULL,
	            "violations:\n  thresholds:\n    pii_blocked: 2\n  on_threshold: alert\n"
	            "kill_switch:\n  notify:\n    - webhook: http://127.0.0.1:1/x\n");
	for (size_t i = 0; i < ARRAY_LEN(WANT); i++) {
		assert_int_equal(session_violation(w.ss, world_id("threshold"), "pii_blocked",
		                                   "a name", &d, &err),
		                 0);
		assert_int_equal(d.notify, WANT[i].told);
		assert_int_equal(d.after.state, WANT[i].after);
		assert_int_equal(d.after.violations, i + 1);
	}
	assert_int_equal(world_lines("threshold", "violation"), 3);
	assert_int_equal(world_lines("threshold", "budget_alert"), 1);
}

/* alert_at sends a message when it is reached, and not again with each later action. */
static void test_alert_is_told_once(void **state)
{
	world_start("told", NULL,
	            "budget: {max_cost_per_session: 10, max_cost_per_action: 9}\n"
	            "kill_switch:\n  notify:\n    - webhook: http://127.0.0.1:1/x\n");
	struct decision first = world_check("told", USD(8.5));
	assert_int_equal(first.verdict.act, ACT_ALERT);
	assert_true(first.notify);
	struct decision next = world_check("told", USD(0.1));
	assert_int_equal(next.verdict.act, ACT_ALERT);
	assert_false(next.notify);
	assert_int_equal(world_lines("told", "budget_alert"), 1);
	assert_false(world_settle(first.reservation, USD(8.5)).notify);
	assert_false(world_settle(next.reservation, USD(0.2)).notify);
	assert_int_equal(world_lines("told", "budget_alert"), 1);
}

/* When a threshold of violations with "block" is reached, all later actions are refused. A policy
 * can write such a threshold in two ways. */
static void test_block_stays(void **state)
{
	static const char *const POLICIES[][2] = {
		{ "b1", "violations:\n  thresholds:\n    a: 2\n  on_threshold: block\n" },
		{ "b2", "limits: {violations: {total: {max: 1, on_exceed: block}}}\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(POLICIES); i++) {
		const char *name = POLICIES[i][0];
		struct ssb_error err = { 0 };
		struct decision d = { 0 };
		world_start(name, NULL, POLICIES[i][1]);
		for (int n = 0; n < 2; n++) {
			assert_true(world_check(name, 0).verdict.allowed);
			assert_int_equal(
			        session_violation(w.ss, world_id(name), "a", NULL, &d, &err), 0);
		}
		world_reopen();
		d = world_check(name, 0);
		assert_int_equal(d.verdict.act, ACT_BLOCK);
		assert_string_equal(session_code_name(d.verdict.code), "threshold");
		assert_false(d.verdict.allowed);
		assert_int_equal(d.after.state, SESSION_ACTIVE);
	}
}

static void test_threshold_kills(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("kills", NULL, "violations:\n  thresholds:\n    pii_blocked: 3\n");
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(
		        session_violation(w.ss, world_id("kills"), "other_kind", NULL, &d, &err),
		        0);
		assert_string_equal(session_code_name(d.verdict.code), "ok");
		assert_int_equal(
		        session_violation(w.ss, world_id("kills"), "pii_blocked", NULL, &d, &err),
		        0);
		assert_int_equal(d.state, i < 3 ? SESSION_ACTIVE : SESSION_KILLED);
	}
	assert_int_equal(session_violation(w.ss, world_id("kills"), "", NULL, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
}

static void test_budget_of_nothing(void **state)
{
	world_start("zero-budget", NULL,
	            "budget:\n  max_cost_per_session: 0\n  on_exceed: block\n");
	assert_true(world_check("zero-budget", 0).verdict.allowed);
	assert_false(world_check("zero-budget", 1).verdict.allowed);
}

static int count_session(void *arg, const struct session *s)
{
	struct {
		const char *id;
		size_t n;
	} *q = arg;

	q->n += strcmp(s->id, q->id) == 0 ? 1 : 0;
	return 0;
}

static void test_idle_expires(void **state)
{
	struct ssb_error err = { 0 };
	struct session_swept swept;
	struct {
		const char *id;
		size_t n;
	} q = { .n = 0 };

	world_now = 5000 * SECOND;
	world_start("idle", NULL, SMALL);
	world_start("idle2", NULL, SMALL);
	world_now += 60 * SECOND;
	assert_int_equal(session_sweep(w.ss, &swept, &err), 0);
	assert_int_equal(world_get("idle").state, SESSION_ACTIVE);
	world_now++;
	/* A session that is due expires when it is read, ... */
	struct session s = world_get("idle");
	assert_int_equal(s.state, SESSION_EXPIRED);
	assert_int_equal(s.ended_us, world_now);
	/* ... or when the sweep runs. */
	assert_int_equal(session_sweep(w.ss, &swept, &err), 0);
	assert_int_not_equal(swept.expired, 0);
	q.id = world_id("idle2");
	assert_int_equal(session_each(w.ss, false, count_session, &q, &err), 0);
	assert_int_equal(q.n, 0);
	assert_int_equal(session_each(w.ss, true, count_session, &q, &err), 0);
	assert_int_equal(q.n, 1);
	assert_int_equal(session_sweep(w.ss, &swept, &err), 0);
	assert_int_equal(swept.expired, 0);
	world_now = 0;
}

static void test_cost_in_flight(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("flight", NULL, SMALL);
	int64_t r = world_check("flight", USD(0.4)).reservation;
	assert_int_equal(session_become(w.ss, world_id("flight"), SESSION_KILLED, "stop", &d, &err),
	                 0);
	d = world_settle(r, USD(0.35));
	assert_int_equal(d.after.spent, USD(0.35));
	assert_int_equal(d.after.reserved, 0);
	assert_int_equal(d.after.state, SESSION_KILLED);
	assert_int_equal(session_settle(w.ss, r, USD(0.1), &d, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_int_equal(world_get("flight").spent, USD(0.35));
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_settle(w.ss, INT64_MAX, 1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
}

static void test_survives_restart(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("restart", NULL, SMALL);
	int64_t r = world_check("restart", USD(0.4)).reservation;
	assert_int_equal(session_become(w.ss, world_id("restart"), SESSION_KILLED,
	                                "no more of this", &d, &err),
	                 0);
	world_reopen();
	d = world_check("restart", 0);
	assert_false(d.verdict.allowed);
	assert_non_null(strstr(d.verdict.reason, "no more of this"));
	assert_int_equal(world_get("restart").reserved, USD(0.4));
	assert_int_equal(world_settle(r, USD(0.1)).after.spent, USD(0.1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_order),
		cmocka_unit_test(test_unknown_and_over),
		cmocka_unit_test(test_overspending_acts),
		cmocka_unit_test(test_on_exceed),
		cmocka_unit_test(test_kill_switch_off),
		cmocka_unit_test(test_amounts),
		cmocka_unit_test(test_id_is_used_once),
		cmocka_unit_test(test_ids_that_are_none),
		cmocka_unit_test(test_reservations_hold),
		cmocka_unit_test(test_overspending_is_told),
		cmocka_unit_test(test_threshold_alerts),
		cmocka_unit_test(test_alert_is_told_once),
		cmocka_unit_test(test_block_stays),
		cmocka_unit_test(test_threshold_kills),
		cmocka_unit_test(test_budget_of_nothing),
		cmocka_unit_test(test_idle_expires),
		cmocka_unit_test(test_cost_in_flight),
		cmocka_unit_test(test_survives_restart),
	};

	return ON_EACH_STORE(tests, open_world);
}
