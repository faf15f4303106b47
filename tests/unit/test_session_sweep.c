/* test_session_sweep.c - what the sweep does with sessions and reservations whose time is over, and
 * invalid commands of the owner. The tests read states directly from the store, because each call
 * of the API would first apply everything that is due. The tests run on SQLite, and also on
 * PostgreSQL if SSB_TEST_POSTGRES names a server. */
#include <stdio.h>
#include <string.h>

#include "session_tests.h"

#define MANY 300 /* more sessions than one query of the sweep returns */

/* Reads a value directly from the store, because a call of the API would first apply everything
 * that is due. */
static int64_t ask(const char *sql, const char *name)
{
	struct ssb_error err = { 0 };
	int64_t v = -1;

	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(store_ask(w.ss, sql, DB_ARGS(DB_T(world_id(name))), &v, &err), 1);
	db_rollback(w.ss->db);
	return v;
}

#define STORED(column, name) ask("SELECT " column " FROM sessions WHERE id = $1", name)

static size_t sweep(void)
{
	struct ssb_error err = { 0 };
	struct session_swept swept;

	if (session_sweep(w.ss, &swept, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return swept.expired;
}

/* The reservation of a session times out by the sweep, even if no command uses the session
 * again. */
static void test_reservations_time_out(void **state)
{
	world_now = 7000 * SECOND;
	world_start("due", NULL, "budget:\n  reservation_timeout: 10s\n");
	(void)world_check("due", USD(0.4));
	world_now += 10 * SECOND - 1;
	(void)sweep();
	assert_int_equal(STORED("reserved", "due"), USD(0.4));
	world_now++;
	assert_int_equal(STORED("reserved", "due"), USD(0.4));
	(void)sweep();
	assert_int_equal(STORED("reserved", "due"), 0);
	assert_int_equal(STORED("spent", "due"), USD(0.4));
	(void)sweep();
	assert_int_equal(world_lines("due", "action_settled"), 1);
	world_now = 0;
}

/* The sweep ends all sessions whose time is over, however many there are, and no others. */
static void test_many_expire(void **state)
{
	char name[16];

	world_now = 20000 * SECOND;
	(void)sweep(); /* ends sessions of earlier tests */
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		world_start(name, NULL, "session:\n  max_duration: 60s\n");
	}
	world_start("later", NULL, "session:\n  max_duration: 61s\n");
	world_now += 60 * SECOND;
	assert_int_equal(sweep(), 0);
	world_now++;
	assert_int_equal(sweep(), MANY);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(STORED("state", name), SESSION_EXPIRED);
	}
	assert_int_equal(STORED("state", "later"), SESSION_ACTIVE);
	world_now = 0;
}

/* A session whose time is over cannot get a child. Trying it stores the session as expired. */
static void test_parent_is_over(void **state)
{
	struct ssb_error err = { 0 };
	struct session_policy p = { 0 };
	struct decision d = { 0 };

	world_now = 30000 * SECOND;
	world_start("parent", NULL, "session:\n  max_duration: 60s\n");
	world_now += 60 * SECOND + 1;
	assert_int_equal(session_policy_init(&p, &err), 0);
	const struct session_request req = { .id = world_id("child"),
		                             .parent = world_id("parent"),
		                             .policy = &p };
	assert_int_equal(STORED("state", "parent"), SESSION_ACTIVE);
	assert_int_equal(session_start(w.ss, &req, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_int_equal(STORED("state", "parent"), SESSION_EXPIRED);
	session_policy_done(&p);
	world_now = 0;
}

/* A reason that is invalid or too long is refused, and the state does not change. */
static void test_reasons(void **state)
{
	static const char *const BAD[] = { "a\nb", "\xff", "\x1b[2J", "a\x7f" };
	char longest[SESSION_REASON + 1];
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("said", NULL, "");
	memset(longest, 'x', sizeof(longest));
	longest[SESSION_REASON] = '\0';
	for (size_t i = 0; i <= ARRAY_LEN(BAD); i++) {
		const char *bad = i < ARRAY_LEN(BAD) ? BAD[i] : longest;
		err = (struct ssb_error){ 0 };
		assert_int_equal(
		        session_become(w.ss, world_id("said"), SESSION_PAUSED, bad, &d, &err), -1);
		assert_int_equal(err.code, SSB_E_USAGE);
		assert_int_equal(world_get("said").state, SESSION_ACTIVE);
	}
	longest[SESSION_REASON - 1] = '\0';
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_become(w.ss, world_id("said"), SESSION_PAUSED, longest, &d, &err),
	                 0);
	assert_string_equal(world_get("said").reason, longest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reservations_time_out),
		cmocka_unit_test(test_many_expire),
		cmocka_unit_test(test_parent_is_over),
		cmocka_unit_test(test_reasons),
	};

	return ON_EACH_STORE(tests, open_world);
}
