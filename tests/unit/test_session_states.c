/* test_session_states.c - the states of sessions and of their reservations: over time, by commands
 * of the owner, and in trees. The tests run on SQLite, and also on PostgreSQL if SSB_TEST_POSTGRES
 * names a server. */
#include <stdio.h>
#include <string.h>

#include "session_tests.h"

/* ---- reservations and time ----------------------------------------------- */

static void test_time_out(void **state)
{
	static const struct {
		const char *name;
		const char *yaml;
		micros timed_out; /* `spent` after the time-out */
		micros actual;    /* the real cost, which is settled after the time-out */
		micros late;      /* `spent` after this settlement */
	} CASES[] = {
		{ "t-charge", "budget:\n  reservation_timeout: 10s\n", USD(0.4), USD(0.1),
		  USD(0.1) },
		{ "t-more", "budget:\n  reservation_timeout: 10s\n", USD(0.4), USD(0.5), USD(0.5) },
		{ "t-back", "budget:\n  reservation_timeout: 10s\n", USD(0.4), -1, 0 },
		{ "t-release", "budget:\n  reservation_timeout: 10s\n  on_timeout: release\n", 0,
		  USD(0.1), USD(0.1) },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_error err = { 0 };
		struct decision d = { 0 };
		world_now = 7000 * SECOND;
		world_start(CASES[i].name, NULL, CASES[i].yaml);
		int64_t r = world_check(CASES[i].name, USD(0.4)).reservation;
		world_now += 10 * SECOND - 1;
		assert_int_equal(world_get(CASES[i].name).reserved, USD(0.4));
		world_now++;
		struct session s = world_get(CASES[i].name);
		assert_int_equal(s.reserved, 0);
		assert_int_equal(s.spent, CASES[i].timed_out);
		d = world_settle(r, CASES[i].actual);
		assert_int_equal(d.after.spent, CASES[i].late);
		assert_int_equal(d.after.reserved, 0);
		assert_int_equal(session_settle(w.ss, r, USD(0.2), &d, &err), -1);
		assert_int_equal(err.code, SSB_E_NOT_FOUND);
	}
	world_now = 0;
}

/* If a reservation is settled after its time-out, but no process has noticed the time-out yet, it
 * counts as settled in time. */
static void test_late_but_first(void **state)
{
	world_now = 8000 * SECOND;
	world_start("late", NULL, "budget:\n  reservation_timeout: 1s\n");
	int64_t r = world_check("late", USD(0.4)).reservation;
	int64_t other = world_check("late", USD(0.3)).reservation;
	world_now += 5 * SECOND;
	struct decision d = world_settle(r, USD(0.1));
	/* the other reservation ($0.30) has timed out, and is charged */
	assert_int_equal(d.after.spent, USD(0.1) + USD(0.3));
	assert_int_equal(d.after.reserved, 0);
	d = world_settle(other, USD(0.2));
	assert_int_equal(d.after.spent, USD(0.3));
	world_now = 0;
}

static void test_many_time_out(void **state)
{
	struct ssb_error err = { 0 };
	struct session_swept swept;

	world_now = 8500 * SECOND;
	world_start("many", NULL,
	            "budget:\n  reservation_timeout: 1s\nsession:\n  max_actions: 1000\n");
	for (int i = 0; i < 130; i++) {
		assert_true(world_check("many", 1000).verdict.allowed);
	}
	world_now += 2 * SECOND;
	assert_int_equal(session_sweep(w.ss, &swept, &err), 0);
	assert_int_equal(world_get("many").spent, 130 * 1000);
	assert_int_equal(world_get("many").reserved, 0);
	world_now = 0;
}

/* Reservations of several sessions of a tree time out, each at its own time. */
static void test_each_times_out_in_its_time(void **state)
{
	world_now = 8700 * SECOND;
	world_start("slow", NULL, "budget:\n  reservation_timeout: 60s\n");
	world_start("quick", "slow", "budget:\n  reservation_timeout: 10s\n");
	assert_true(world_check("slow", USD(0.1)).verdict.allowed);
	assert_true(world_check("quick", USD(0.2)).verdict.allowed);
	world_now += 5 * SECOND;
	assert_true(world_check("slow", USD(0.4)).verdict.allowed);
	static const struct {
		int64_t at; /* seconds after the first reservation */
		micros reserved;
	} CASES[] = { { 9, USD(0.7) },  { 10, USD(0.5) }, { 59, USD(0.5) }, { 60, USD(0.4) },
		      { 64, USD(0.4) }, { 65, 0 },        { 200, 0 } };
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		world_now = (8700 + CASES[i].at) * SECOND;
		assert_int_equal(world_get("slow").reserved, CASES[i].reserved);
	}
	assert_true(world_check("slow", USD(0.1)).verdict.allowed);
	world_now += 60 * SECOND;
	assert_int_equal(world_get("slow").reserved, 0);
	world_now = 0;
}

static void test_given_back(void **state)
{
	world_start("back", NULL, SMALL);
	struct decision d = world_check("back", USD(0.5));
	d = world_settle(d.reservation, -1);
	assert_int_equal(d.after.spent, 0);
	assert_int_equal(d.after.reserved, 0);
	/* An action whose reservation was given back still counts as an action. Otherwise an agent
	 * could try actions for free. */
	assert_int_equal(d.after.actions, 1);
}

/* ---- states -------------------------------------------------------------- */

static void test_states(void **state)
{
	static const enum session_state ASK[] = { SESSION_ACTIVE, SESSION_PAUSED, SESSION_KILLED,
		                                  SESSION_COMPLETED, SESSION_EXPIRED };
	static const enum session_state FROM[] = { SESSION_ACTIVE,    SESSION_ALERT,
		                                   SESSION_PAUSED,    SESSION_KILLED,
		                                   SESSION_COMPLETED, SESSION_EXPIRED };

	for (size_t f = 0; f < ARRAY_LEN(FROM); f++) {
		for (size_t a = 0; a < ARRAY_LEN(ASK); a++) {
			struct ssb_error err = { 0 };
			struct decision d = { 0 };
			char name[32];
			snprintf(name, sizeof(name), "state-%zu-%zu", f, a);
			world_start(name, NULL, SMALL);
			if (FROM[f] == SESSION_ALERT) {
				world_settle(world_check(name, USD(0.5)).reservation, USD(0.9));
			} else if (FROM[f] != SESSION_ACTIVE) {
				assert_int_equal(session_become(w.ss, world_id(name), FROM[f],
				                                "first", &d, &err),
				                 0);
			}
			assert_int_equal(world_get(name).state, FROM[f]);
			bool may = session_may_become(FROM[f], ASK[a]);
			int rc = session_become(w.ss, world_id(name), ASK[a], "then", &d, &err);
			assert_int_equal(rc, may ? 0 : -1);
			assert_int_equal(world_get(name).state, may ? ASK[a] : FROM[f]);
			if (!may) {
				assert_int_equal(err.code, SSB_E_POLICY);
			}
		}
	}
}

static void test_resume_is_alert_again(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	const char *id = NULL;

	world_start("resume", NULL, SMALL);
	world_settle(world_check("resume", USD(0.5)).reservation, USD(0.9));
	id = world_id("resume");
	assert_int_equal(session_become(w.ss, id, SESSION_PAUSED, "look", &d, &err), 0);
	assert_int_equal(d.verdict.act, ACT_PAUSE);
	d = world_check("resume", 0);
	assert_false(d.verdict.allowed);
	assert_string_equal(session_code_name(d.verdict.code), "session_paused");
	assert_int_equal(session_become(w.ss, id, SESSION_ACTIVE, "", &d, &err), 0);
	assert_int_equal(d.after.state, SESSION_ALERT);
	assert_int_equal(d.state, SESSION_ALERT);
	assert_true(world_check("resume", 0).verdict.allowed);
	assert_int_equal(session_become(w.ss, id, SESSION_ALERT, "", &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
}

/* ---- trees --------------------------------------------------------------- */

static void test_child_counts_in_parent(void **state)
{
	world_start("p", NULL, "budget:\n  max_cost_per_session: 1\n  on_exceed: kill\n");
	world_start("c1", "p", "budget:\n  max_cost_per_session: 10\n");
	world_start("c2", "c1", "budget:\n  max_cost_per_session: 10\n");
	world_start("side", "p", "");
	struct decision d = world_check("c2", USD(0.5));
	assert_int_equal(world_get("p").reserved, USD(0.5));
	assert_int_equal(world_get("c1").reserved, USD(0.5));
	assert_int_equal(world_get("side").reserved, 0);
	world_settle(d.reservation, USD(0.4));
	assert_int_equal(world_get("p").spent, USD(0.4));
	assert_int_equal(world_get("p").actions, 1);
	assert_string_equal(world_get("c2").parent, world_id("c1"));
	d = world_check("c2", USD(0.5)); /* now the parent has used 90 % of its budget */
	assert_true(d.verdict.allowed);
	assert_string_equal(d.decided, world_id("p"));
	assert_int_equal(d.state, SESSION_ALERT);
	assert_int_equal(d.after.state, SESSION_ACTIVE);
	/* The budget of the parent is exceeded: the parent and its whole tree are killed. */
	d = world_check("side", USD(0.2));
	assert_false(d.verdict.allowed);
	assert_string_equal(d.decided, world_id("p"));
	assert_true(d.changed);
	assert_int_equal(d.after.state, SESSION_KILLED);
	assert_int_equal(world_get("c2").state, SESSION_KILLED);
	assert_non_null(strstr(world_get("c2").reason, world_id("p")));
	assert_int_equal(world_get("side").reserved, 0);
}

static void test_kill_reaches_all(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("k0", NULL, SMALL);
	world_start("k1", "k0", SMALL);
	world_start("k2", "k1", SMALL);
	world_start("k3", "k2", SMALL);
	world_start("kx", "k0", SMALL);
	assert_int_equal(session_become(w.ss, world_id("k1"), SESSION_KILLED, "enough", &d, &err),
	                 0);
	assert_int_equal(world_get("k0").state, SESSION_ACTIVE);
	assert_int_equal(world_get("kx").state, SESSION_ACTIVE);
	assert_int_equal(world_get("k2").state, SESSION_KILLED);
	assert_int_equal(world_get("k3").state, SESSION_KILLED);
	assert_int_equal(world_lines("k3", "session_killed"), 1);
	assert_int_equal(world_lines("k3", "signature"), 1);
}

static void test_pause_and_resume_of_a_tree(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("q0", NULL, SMALL);
	world_start("q1", "q0", SMALL);
	world_start("q2", "q1", SMALL);
	world_start("own", "q0", SMALL);
	assert_int_equal(session_become(w.ss, world_id("own"), SESSION_PAUSED, "", &d, &err), 0);
	assert_int_equal(session_become(w.ss, world_id("q0"), SESSION_PAUSED, "", &d, &err), 0);
	assert_int_equal(world_get("q2").state, SESSION_PAUSED);
	assert_false(world_check("q2", 0).verdict.allowed);
	/* A session whose parent is paused cannot be resumed alone. */
	assert_int_equal(session_become(w.ss, world_id("q2"), SESSION_ACTIVE, "", &d, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_become(w.ss, world_id("q0"), SESSION_ACTIVE, "", &d, &err), 0);
	assert_int_equal(world_get("q2").state, SESSION_ACTIVE);
	assert_int_equal(world_get("own").state, SESSION_PAUSED); /* it was paused before q0 */
	assert_int_equal(session_become(w.ss, world_id("own"), SESSION_ACTIVE, "", &d, &err), 0);
}

static void test_depth(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_policy p = { 0 };
	char name[16];
	char parent[16] = "";

	for (int i = 0; i < SESSION_DEPTH; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		world_start(name, i > 0 ? parent : NULL, SMALL);
		snprintf(parent, sizeof(parent), "%s", name);
	}
	assert_int_equal(session_policy_init(&p, &err), 0);
	struct session_request req = { .parent = world_id(parent), .policy = &p };
	assert_int_equal(session_start(w.ss, &req, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	d = world_check(parent, USD(0.1));
	assert_true(d.verdict.allowed);
	assert_int_equal(world_get("d0").reserved, USD(0.1));
	/* A session below a paused one cannot start a child. */
	err = (struct ssb_error){ 0 };
	req.parent = world_id("d3");
	assert_int_equal(session_become(w.ss, world_id("d1"), SESSION_PAUSED, "", &d, &err), 0);
	assert_int_equal(session_start(w.ss, &req, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	session_policy_done(&p);
}

static void test_parent_expires(void **state)
{
	world_now = 9000 * SECOND;
	world_start("ep", NULL, SMALL);
	world_start("ec", "ep", "session:\n  max_duration: 10h\n");
	world_start("es", "ep", "session:\n  max_duration: 10h\n");
	world_now += 61 * SECOND;
	struct decision d = world_check("ec", 0);
	assert_false(d.verdict.allowed);
	assert_string_equal(session_code_name(d.verdict.code), "max_duration");
	assert_string_equal(d.decided, world_id("ep"));
	assert_int_equal(d.verdict.act, ACT_KILL);
	assert_true(d.changed);
	assert_int_equal(d.state, SESSION_EXPIRED);
	assert_int_equal(d.after.state, SESSION_EXPIRED);
	assert_int_equal(world_get("es").state, SESSION_EXPIRED);
	world_now = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_out),
		cmocka_unit_test(test_late_but_first),
		cmocka_unit_test(test_many_time_out),
		cmocka_unit_test(test_each_times_out_in_its_time),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_resume_is_alert_again),
		cmocka_unit_test(test_child_counts_in_parent),
		cmocka_unit_test(test_kill_reaches_all),
		cmocka_unit_test(test_pause_and_resume_of_a_tree),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_parent_expires),
	};

	return ON_EACH_STORE(tests, open_world);
}
