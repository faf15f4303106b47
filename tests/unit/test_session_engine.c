/* test_session_engine.c - every decision of the session engine in the order of its checks, and
 * cases in which an existing engine of another project has security holes. */
#include "engine_world.h"

/* ---- behaviour that both engines have ------------------------------------- */

static void within(void **state)
{
	begin("");
	expect(check(0), true, ACT_LOG, "ok");
	expect(check(0.5), true, ACT_LOG, "ok");
	w.s.spent = USD(3.49);
	expect(check(0.5), true, ACT_LOG, "ok"); /* together $3.99 of $5 */
}

static void order_of_checks(void **state)
{
	begin("{budget: {max_cost_per_session: 1}, session: {max_actions: 3}}");
	int64_t late = T0 + 1800 * SECOND + 1;
	/* At first, every check would fail. The test then removes one reason after the other. */
	w.s.spent = USD(2);
	w.s.actions = 3;
	w.s.state = SESSION_KILLED;
	snprintf(w.s.reason, sizeof(w.s.reason), "by its owner");
	struct verdict v = engine_check(&w.s, USD(9), late);
	expect(v, false, ACT_BLOCK, "session_over");
	assert_non_null(strstr(v.reason, "killed: by its owner"));
	w.s.state = SESSION_PAUSED;
	expect(engine_check(&w.s, USD(9), late), false, ACT_BLOCK, "session_paused");
	w.s.state = SESSION_ACTIVE;
	expect(engine_check(&w.s, USD(9), late), false, ACT_KILL, "max_duration");
	snprintf(w.s.blocked, sizeof(w.s.blocked), "pii_blocked: 3 times");
	v = engine_check(&w.s, USD(9), late - 1);
	expect(v, false, ACT_BLOCK, "threshold");
	assert_string_equal(v.reason, "pii_blocked: 3 times");
	expect(engine_run(&w.s, late - 1), false, ACT_BLOCK, "threshold");
	w.s.blocked[0] = '\0';
	expect(engine_check(&w.s, USD(9), late - 1), false, ACT_KILL, "max_actions");
	w.s.actions = 2;
	expect(engine_check(&w.s, USD(9), late - 1), false, ACT_BLOCK, "max_cost_per_action");
	expect(engine_check(&w.s, USD(0.5), late - 1), false, ACT_KILL, "max_cost_per_session");
	w.s.spent = USD(0.5);
	expect(engine_check(&w.s, USD(0.5), late - 1), true, ACT_ALERT, "alert_at");
	expect(engine_check(&w.s, USD(0.29), late - 1), true, ACT_LOG, "ok");
}

static void over_is_over(void **state)
{
	begin("");
	for (unsigned st = 0; st < SESSION_STATES; st++) {
		w.s.state = (enum session_state)st;
		bool open = session_is_active(w.s.state);
		assert_int_equal(check(0).allowed, open);
		assert_int_equal(engine_run(&w.s, T0 + 1).allowed, open);
		assert_int_equal(session_is_over(w.s.state), !open && st != SESSION_PAUSED);
	}
}

static void exact_edges(void **state)
{
	begin("budget: {max_cost_per_session: 1, max_cost_per_action: 1}");
	w.s.spent = USD(0.6);
	expect(check(0.4), true, ACT_ALERT, "alert_at"); /* uses exactly the whole budget */
	expect(engine_check(&w.s, USD(0.4) + 1, T0), false, ACT_KILL, "max_cost_per_session");
	w.s.spent = 0;
	expect(engine_check(&w.s, USD(0.8) - 1, T0), true, ACT_LOG, "ok");
	expect(engine_check(&w.s, USD(0.8), T0), true, ACT_ALERT, "alert_at");
	expect(engine_check(&w.s, USD(1) + 1, T0), false, ACT_BLOCK, "max_cost_per_action");
	w.s.actions = 99;
	expect(check(0), true, ACT_LOG, "ok");
	w.s.actions = 100;
	expect(check(0), false, ACT_KILL, "max_actions");
}

static void on_exceed_each(void **state)
{
	static const struct {
		const char *word;
		bool allowed;
		enum session_act act;
		enum session_state next;
	} ROWS[] = {
		{ "log", true, ACT_LOG, SESSION_ALERT },
		{ "alert", true, ACT_ALERT, SESSION_ALERT },
		{ "block", false, ACT_BLOCK, SESSION_ALERT },
		{ "pause", false, ACT_PAUSE, SESSION_PAUSED },
		{ "kill", false, ACT_KILL, SESSION_KILLED },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char text[128];
		snprintf(text, sizeof(text), "budget: {on_exceed: %s}", ROWS[i].word);
		begin(text);
		w.s.spent = USD(4.9);
		w.s.state = SESSION_ALERT;
		struct verdict v = check(0.2);
		expect(v, ROWS[i].allowed, ROWS[i].act, "max_cost_per_session");
		assert_int_equal(engine_next(&w.s, v.act), ROWS[i].next);
		/* on_exceed has the same effect if only the real cost of an action exceeds the
		 * budget. */
		w.s.spent = USD(5.1);
		v = engine_settle(&w.s, USD(0.2), USD(0.1));
		expect(v, true, ROWS[i].act, "max_cost_per_session");
	}
}

static void violations_count(void **state)
{
	begin("violations: {thresholds: {pii_blocked: 3, scope_violation: 1}}");
	expect(engine_violation(&w.s, "pii_blocked", 1), true, ACT_LOG, "ok");
	expect(engine_violation(&w.s, "pii_blocked", 2), true, ACT_LOG, "ok");
	expect(engine_violation(&w.s, "pii_blocked", 3), false, ACT_KILL, "threshold");
	expect(engine_violation(&w.s, "pii_blocked", 4), false, ACT_KILL, "threshold");
	expect(engine_violation(&w.s, "scope_violation", 1), false, ACT_KILL, "threshold");
	expect(engine_violation(&w.s, "never_heard_of", 99), true, ACT_LOG, "ok");
	w.s.state = SESSION_KILLED;
	expect(engine_violation(&w.s, "pii_blocked", 5), false, ACT_BLOCK, "session_over");
}

/* ---- holes of the existing engine, closed here ---------------------------- */

static void overspending_is_noticed(void **state)
{
	begin("budget: {max_cost_per_session: 1}");
	w.s.spent = USD(50);
	struct verdict v = engine_settle(&w.s, USD(50), USD(0.01));
	expect(v, true, ACT_KILL, "max_cost_per_session");
	assert_int_equal(engine_next(&w.s, v.act), SESSION_KILLED);
	/* The cost is within the budget of the session, but more than max_cost_per_action. */
	w.s.spent = USD(0.6);
	expect(engine_settle(&w.s, USD(0.6), USD(0.1)), true, ACT_ALERT, "max_cost_per_action");
	w.s.spent = USD(0.5);
	expect(engine_settle(&w.s, USD(0.5), USD(0.1)), true, ACT_LOG, "ok");
	w.s.spent = USD(1);
	expect(engine_settle(&w.s, USD(0.5), USD(0.5)), true, ACT_ALERT, "alert_at");
	/* Money that is reserved for other actions counts for alert_at, too. */
	w.s.spent = USD(0.5);
	w.s.reserved = USD(0.6);
	expect(engine_settle(&w.s, USD(0.5), USD(0.5)), true, ACT_ALERT, "alert_at");
	/* The cost of an action that was running when the session was killed is recorded. Nothing
	 * else happens. */
	w.s.state = SESSION_KILLED;
	w.s.spent = USD(50);
	expect(engine_settle(&w.s, USD(50), 0), true, ACT_LOG, "session_over");
}

static void reservations_count(void **state)
{
	int passed = 0;

	begin("budget: {max_cost_per_session: 1, on_exceed: block}");
	for (int i = 0; i < 10; i++) { /* ten actions at once, none settled yet */
		if (check(0.4).allowed) {
			w.s.reserved += USD(0.4);
			w.s.actions++;
			passed++;
		}
	}
	assert_int_equal(passed, 2);
}

static void no_kill_switch(void **state)
{
	uint64_t before[SESSION_METERS] = { 0 };

	begin("{budget: {max_cost_per_session: 1}, kill_switch: {enabled: false},\n"
	      " violations: {thresholds: {x: 1}}, session: {max_actions: 1},\n"
	      " limits: {runs: 0, bytes_out: 5, violations: {total: 0}}}");
	w.s.spent = USD(1);
	struct verdict v = check(0.1);
	expect(v, false, ACT_BLOCK, "max_cost_per_session");
	assert_int_equal(engine_next(&w.s, v.act), SESSION_ACTIVE);
	assert_int_equal(engine_next(&w.s, ACT_KILL), SESSION_ACTIVE);
	expect(engine_violation(&w.s, "x", 1), false, ACT_BLOCK, "threshold");
	w.s.violations = 1;
	expect(engine_violation(&w.s, "y", 1), false, ACT_BLOCK, "violations");
	w.s.violations = 0;
	expect(engine_run(&w.s, T0), false, ACT_BLOCK, "runs");
	w.s.meters[METER_BYTES_OUT] = 6;
	expect(engine_meter(&w.s, before, T0), false, ACT_BLOCK, "bytes_out");
	w.s.actions = 1;
	expect(check(0), false, ACT_BLOCK, "max_actions");
	/* max_duration ends a session even if the kill switch is off. */
	expect(engine_check(&w.s, 0, T0 + 1800 * SECOND + 1), false, ACT_KILL, "max_duration");
}

static void no_refunds(void **state)
{
	begin("");
	w.s.spent = USD(4.9);
	expect(engine_check(&w.s, -1, T0), false, ACT_BLOCK, "amount");
	expect(engine_check(&w.s, INT64_MIN, T0), false, ACT_BLOCK, "amount");
	expect(engine_check(&w.s, INT64_MAX, T0), false, ACT_BLOCK, "amount");
	expect(engine_check(&w.s, MAX_MICROS, T0), false, ACT_BLOCK, "max_cost_per_action");
	/* Very large totals do not wrap around. */
	w.s.spent = INT64_MAX;
	w.s.reserved = INT64_MAX;
	expect(check(0.5), false, ACT_KILL, "max_cost_per_session");
	expect(engine_settle(&w.s, INT64_MAX, 0), true, ACT_KILL, "max_cost_per_session");
}

static void threshold_words_act(void **state)
{
	static const struct {
		const char *word;
		bool allowed;
		enum session_act act;
		enum session_state next;
	} ROWS[] = {
		{ "log", true, ACT_LOG, SESSION_ACTIVE },
		{ "alert", true, ACT_ALERT, SESSION_ALERT },
		{ "block", false, ACT_BLOCK, SESSION_ACTIVE },
		{ "pause", false, ACT_PAUSE, SESSION_PAUSED },
		{ "kill", false, ACT_KILL, SESSION_KILLED },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char text[128];
		snprintf(text, sizeof(text), "violations: {on_threshold: %s, thresholds: {x: 2}}",
		         ROWS[i].word);
		begin(text);
		expect(engine_violation(&w.s, "x", 1), true, ACT_LOG, "ok");
		struct verdict v = engine_violation(&w.s, "x", 2);
		expect(v, ROWS[i].allowed, ROWS[i].act, "threshold");
		w.s.state = engine_next(&w.s, v.act);
		assert_int_equal(w.s.state, ROWS[i].next);
	}
}

/* In the state alert, one more violation causes no second alert. If the owner resumes a paused
 * session, the next violation pauses it again. */
static void thresholds_later(void **state)
{
	begin("violations: {thresholds: {a: {count: 2, on_threshold: alert},\n"
	      "  p: {count: 2, on_threshold: pause}, b: {count: 2, on_threshold: block}}}");
	w.s.state = SESSION_ALERT;
	expect(engine_violation(&w.s, "a", 2), true, ACT_ALERT, "threshold");
	expect(engine_violation(&w.s, "a", 3), true, ACT_LOG, "ok");
	w.s.state = SESSION_ACTIVE;
	expect(engine_violation(&w.s, "a", 3), true, ACT_ALERT, "threshold");
	expect(engine_violation(&w.s, "p", 3), false, ACT_PAUSE, "threshold");
	w.s.state = SESSION_PAUSED;
	expect(engine_violation(&w.s, "p", 4), true, ACT_LOG, "ok");
	expect(engine_violation(&w.s, "b", 7), false, ACT_BLOCK, "threshold");
}

static void budget_of_nothing(void **state)
{
	begin("budget: {max_cost_per_session: 0}");
	expect(check(0), true, ACT_LOG, "ok");
	expect(engine_check(&w.s, 1, T0), false, ACT_KILL, "max_cost_per_session");
	expect(engine_settle(&w.s, 0, 0), true, ACT_LOG, "ok");
	begin("budget: {max_cost_per_session: 0, max_cost_per_action: 0}");
	expect(engine_check(&w.s, 1, T0), false, ACT_BLOCK, "max_cost_per_action");
	begin("budget: {alert_at: 0}");
	expect(check(0), true, ACT_ALERT, "alert_at");
	begin("budget: {alert_at: 1}");
	w.s.spent = USD(4.5);
	expect(engine_check(&w.s, USD(0.5) - 1, T0), true, ACT_LOG, "ok");
	expect(check(0.5), true, ACT_ALERT, "alert_at");
}

static void past_everything_at_once(void **state)
{
	begin("budget: {max_cost_per_session: 0.10, on_exceed: log}");
	struct verdict v = check(0.5);
	expect(v, true, ACT_ALERT, "max_cost_per_session");
	w.s.state = engine_next(&w.s, v.act);
	expect(check(0.5), true, ACT_LOG, "max_cost_per_session");
}

/* max_duration ends a session on time, whether it is idle or not. */
static void deadline(void **state)
{
	uint64_t before[SESSION_METERS] = { 0 };

	begin("session: {max_duration: 90s}");
	int64_t end = T0 + 90 * SECOND;
	assert_int_equal(engine_deadline(&w.s), end);
	expect(engine_run(&w.s, end), true, ACT_LOG, "ok");
	expect(engine_run(&w.s, end + 1), false, ACT_KILL, "max_duration");
	expect(engine_meter(&w.s, before, end), true, ACT_LOG, "ok");
	expect(engine_meter(&w.s, before, end + 1), false, ACT_KILL, "max_duration");
	w.s.state = SESSION_PAUSED;
	expect(engine_meter(&w.s, before, end + 1), false, ACT_KILL, "max_duration");
	w.s.state = SESSION_EXPIRED;
	expect(engine_meter(&w.s, before, end + 1), false, ACT_BLOCK, "session_over");
	w.s.created_us = INT64_MAX - 5;
	assert_int_equal(engine_deadline(&w.s), INT64_MAX);
}

/* Compares the next state, for every state and every act, with a table. */
static void next_states(void **state)
{
	static const char *const PICTURE[SESSION_STATES] = {
		/*                     log alert block pause kill */
		[SESSION_ACTIVE] = "    a   l     a     p     k",
		[SESSION_ALERT] = "     l   l     l     p     k",
		[SESSION_PAUSED] = "    p   p     p     p     k",
		[SESSION_KILLED] = "    k   k     k     k     k",
		[SESSION_COMPLETED] = " c   c     c     c     c",
		[SESSION_EXPIRED] = "   e   e     e     e     e",
	};
	static const char LETTERS[] = "alpkce";

	begin("");
	for (unsigned st = 0; st < SESSION_STATES; st++) {
		const char *p = PICTURE[st];
		for (unsigned a = 0; a < SESSION_ACTS; a++) {
			p += strspn(p, " ");
			w.s.state = (enum session_state)st;
			enum session_state to = engine_next(&w.s, (enum session_act)a);
			assert_int_equal(LETTERS[to], *p);
			assert_true(to == w.s.state || session_may_become(w.s.state, to));
			p++;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within),
		cmocka_unit_test(order_of_checks),
		cmocka_unit_test(over_is_over),
		cmocka_unit_test(exact_edges),
		cmocka_unit_test(on_exceed_each),
		cmocka_unit_test(violations_count),
		cmocka_unit_test(overspending_is_noticed),
		cmocka_unit_test(reservations_count),
		cmocka_unit_test(no_kill_switch),
		cmocka_unit_test(no_refunds),
		cmocka_unit_test(threshold_words_act),
		cmocka_unit_test(thresholds_later),
		cmocka_unit_test(budget_of_nothing),
		cmocka_unit_test(past_everything_at_once),
		cmocka_unit_test(deadline),
		cmocka_unit_test(next_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
