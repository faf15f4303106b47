/* test_session_limits.c - the limits of a session: runs, meters and violations; which limit
 * decides, and what the result says. */
#include "engine_world.h"

static void runs(void **state)
{
	begin("limits: {runs: {max: 10, on_exceed: block}}");
	w.s.meters[METER_RUNS] = 6;
	expect(engine_run(&w.s, T0), true, ACT_LOG, "ok");
	w.s.meters[METER_RUNS] = 7;
	expect(engine_run(&w.s, T0), true, ACT_ALERT, "runs"); /* the eighth run of ten */
	w.s.meters[METER_RUNS] = 8;
	expect(engine_run(&w.s, T0), true, ACT_LOG, "ok");
	w.s.meters[METER_RUNS] = 9;
	expect(engine_run(&w.s, T0), true, ACT_LOG, "ok");
	w.s.meters[METER_RUNS] = 10;
	expect(engine_run(&w.s, T0), false, ACT_BLOCK, "runs");
	w.s.meters[METER_RUNS] = 11;
	expect(engine_run(&w.s, T0), false, ACT_BLOCK, "runs");
	w.s.actions = 100;
	expect(engine_run(&w.s, T0), false, ACT_KILL, "max_actions");
}

/* The limit of runs pauses the session and the owner resumes it: the next run pauses it again. */
static void runs_that_pause(void **state)
{
	begin("limits: {runs: {max: 10, on_exceed: pause}}");
	for (uint64_t made = 9; made < 13; made++) {
		w.s.meters[METER_RUNS] = made;
		expect(engine_run(&w.s, T0), made < 10, made < 10 ? ACT_LOG : ACT_PAUSE,
		       made < 10 ? "ok" : "runs");
	}
}

/* If a threshold or a limit of violations blocks, later actions are refused, too. Every other
 * refusal is only for one action. */
static void what_stays_refused(void **state)
{
	static const struct {
		struct verdict v;
		bool stays;
	} EACH[] = {
		{ { .act = ACT_BLOCK, .code = VERDICT_THRESHOLD }, true },
		{ { .act = ACT_BLOCK, .code = VERDICT_VIOLATIONS }, true },
		{ { .act = ACT_BLOCK, .code = VERDICT_MAX_COST_PER_ACTION }, false },
		{ { .act = ACT_BLOCK, .code = VERDICT_METER + METER_BYTES_OUT }, false },
		{ { .act = ACT_PAUSE, .code = VERDICT_THRESHOLD }, false },
		{ { .act = ACT_ALERT, .code = VERDICT_VIOLATIONS }, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(EACH); i++) {
		assert_int_equal(engine_blocks(&EACH[i].v), EACH[i].stays);
	}
}

static void other_limits_hold_runs_back(void **state)
{
	begin("limits: {bytes_out: {max: 5, on_exceed: block}, connections: 3,\n"
	      "  domains: {max: 1, on_exceed: pause}, cpu_seconds: {max: 1, on_exceed: log},\n"
	      "  violations: {total: {max: 2, on_exceed: block}}}");
	w.s.meters[METER_CPU_MS] = 5000;
	/* above its limit: this has paused the session, and the owner has resumed it */
	w.s.meters[METER_DOMAINS] = 2;
	w.s.meters[METER_BYTES_OUT] = 5;
	expect(engine_run(&w.s, T0), true, ACT_LOG, "ok");
	w.s.meters[METER_BYTES_OUT] = 6;
	expect(engine_run(&w.s, T0), false, ACT_BLOCK, "bytes_out");
	w.s.meters[METER_CONNECTIONS] = 4;
	expect(engine_run(&w.s, T0), false, ACT_KILL, "connections");
	w.s.meters[METER_CONNECTIONS] = 3;
	w.s.meters[METER_BYTES_OUT] = 0;
	w.s.violations = 3;
	expect(engine_run(&w.s, T0), false, ACT_BLOCK, "violations");
	/* The budget is for actions, and does not refuse a run. */
	w.s.violations = 2;
	w.s.spent = USD(100);
	expect(engine_run(&w.s, T0), true, ACT_LOG, "ok");
}

static void every_meter(void **state)
{
	static const char *const WORDS[SESSION_ACTS] = { "log", "alert", "block", "pause", "kill" };

	for (int m = 0; m < SESSION_METERS; m++) {
		for (int a = 0; a < SESSION_ACTS; a++) {
			char text[128];
			uint64_t before[SESSION_METERS] = { 0 };
			const char *name = session_meter_name((enum session_meter)m);
			snprintf(text, sizeof(text), "limits: {%s: {max: 100, on_exceed: %s}}",
			         name, WORDS[a]);
			begin(text);
			uint64_t max = m == METER_CPU_MS || m == METER_WALL_MS ? 100000 : 100;
			uint64_t near = max / 10 * 8;
			w.s.meters[m] = near - 1;
			expect(engine_meter(&w.s, before, T0), true, ACT_LOG, "ok");
			before[m] = near - 1;
			w.s.meters[m] = near;
			expect(engine_meter(&w.s, before, T0), true, ACT_ALERT, name);
			before[m] = near;
			/* no second alert, and a value of exactly `max` does not exceed the
			 * limit */
			w.s.meters[m] = max;
			expect(engine_meter(&w.s, before, T0), true, ACT_LOG, "ok");
			before[m] = max;
			w.s.meters[m] = max + 1;
			expect(engine_meter(&w.s, before, T0), a < ACT_BLOCK, (enum session_act)a,
			       name);
			before[m] = max + 1;
			/* Another run has already exceeded the limit. block and kill apply to this
			 * run, too. A pause does not, because the owner may have resumed the
			 * session. */
			w.s.meters[m] = max + 2;
			bool insists = a == ACT_BLOCK || a == ACT_KILL;
			expect(engine_meter(&w.s, before, T0), !insists,
			       insists ? (enum session_act)a : ACT_LOG, insists ? name : "ok");
		}
	}
}

static void hardest_wins(void **state)
{
	uint64_t before[SESSION_METERS] = { 0 };

	begin("limits: {bytes_out: {max: 10, on_exceed: alert}, domains: 10,\n"
	      "  connections: {max: 1, on_exceed: pause}, bytes_in: {max: 0, on_exceed: log}}");
	w.s.meters[METER_BYTES_OUT] = 11;
	w.s.meters[METER_BYTES_IN] = 1;
	w.s.meters[METER_CONNECTIONS] = 2;
	w.s.meters[METER_DOMAINS] = 9;
	struct verdict v = engine_meter(&w.s, before, T0);
	expect(v, false, ACT_PAUSE, "connections");
	assert_non_null(strstr(v.reason, "bytes_out: 11, more than 10"));
	assert_non_null(strstr(v.reason, "bytes_in: 1, more than 0"));
	assert_non_null(strstr(v.reason, "domains: 9 of 10"));
	/* Meters at their largest value do not wrap around. */
	w.s.meters[METER_BYTES_OUT] = UINT64_MAX;
	w.s.meters[METER_DOMAINS] = UINT64_MAX;
	expect(engine_meter(&w.s, before, T0), false, ACT_KILL, "domains");
}

/* The owner gets a message when a limit is exceeded, whatever the session then does. */
static void what_happened_is_told(void **state)
{
	uint64_t before[SESSION_METERS] = { 0 };

	begin("budget: {max_cost_per_session: 1}\nkill_switch: {enabled: false}\n"
	      "limits: {bytes_out: {max: 10, on_exceed: log}, domains: 10,\n"
	      "  bytes_in: {max: 10, on_exceed: block}}");
	/* A refused action causes no message. */
	struct verdict v = check(0.6);
	assert_false(v.tells);
	w.s.spent = USD(0.9);
	v = check(0.5);
	expect(v, false, ACT_BLOCK, "max_cost_per_session");
	assert_false(v.tells);
	/* The budget is exceeded only when the real cost is known: the session does not end, but
	 * the owner gets a message. */
	w.s.spent = USD(500);
	v = engine_settle(&w.s, USD(500), USD(0.1));
	expect(v, true, ACT_BLOCK, "max_cost_per_session");
	assert_true(v.tells);
	assert_non_null(strstr(v.reason, "has cost $500.00"));
	/* One report of a run goes from below alert_at to above the limit. */
	static const enum session_meter JUMPS[] = { METER_BYTES_OUT, METER_BYTES_IN };
	for (size_t i = 0; i < ARRAY_LEN(JUMPS); i++) {
		before[JUMPS[i]] = 7;
		w.s.meters[JUMPS[i]] = 11;
		v = engine_meter(&w.s, before, T0);
		expect(v, i == 0, i == 0 ? ACT_LOG : ACT_BLOCK, session_meter_name(JUMPS[i]));
		assert_true(v.tells);
		before[JUMPS[i]] = 8; /* as if alert_at had been reported before */
		v = engine_meter(&w.s, before, T0);
		assert_false(v.tells);
		before[JUMPS[i]] = w.s.meters[JUMPS[i]];
	}
	/* One meter is near its limit, and another one exceeds its limit. */
	before[METER_BYTES_IN] = 9;
	w.s.meters[METER_DOMAINS] = 9;
	v = engine_meter(&w.s, before, T0);
	expect(v, false, ACT_BLOCK, "bytes_in");
	assert_true(v.tells);
}

static void limits_of_violations(void **state)
{
	begin("limits: {violations: {credential_harvesting: 0, file_blocked: {max: 2,\n"
	      "  on_exceed: pause}, total: {max: 4, on_exceed: alert}}}");
	w.s.violations = 1;
	expect(engine_violation(&w.s, "credential_harvesting", 1), false, ACT_KILL, "threshold");
	expect(engine_violation(&w.s, "file_blocked", 2), true, ACT_LOG, "ok");
	expect(engine_violation(&w.s, "file_blocked", 3), false, ACT_PAUSE, "threshold");
	w.s.violations = 4;
	expect(engine_violation(&w.s, "other", 1), true, ACT_LOG, "ok");
	w.s.violations = 5;
	expect(engine_violation(&w.s, "other", 1), true, ACT_ALERT, "violations");
	struct verdict v = engine_violation(&w.s, "file_blocked", 3);
	expect(v, false, ACT_PAUSE, "threshold");
	assert_non_null(strstr(v.reason, "5 violations, more than the limit of 4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs),
		cmocka_unit_test(runs_that_pause),
		cmocka_unit_test(what_stays_refused),
		cmocka_unit_test(other_limits_hold_runs_back),
		cmocka_unit_test(every_meter),
		cmocka_unit_test(hardest_wins),
		cmocka_unit_test(what_happened_is_told),
		cmocka_unit_test(limits_of_violations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
