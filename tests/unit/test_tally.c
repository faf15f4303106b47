/* test_tally.c - the tally of what a run has used: nothing is lost, nothing counts twice, and
 * urgent numbers are reported immediately. */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"
#include "session/tally.h"

static struct tally t;

static int setup(void **state)
{
	return tally_init(&t, NULL);
}

static int teardown(void **state)
{
	free(t.names);
	return 0;
}

static void used(uint64_t cpu, uint64_t wall, uint64_t out, uint64_t in)
{
	struct govern_msg m = { .kind = GOVERN_USED };

	m.used.cpu_ms = cpu;
	m.used.wall_ms = wall;
	m.used.bytes_out = out;
	m.used.bytes_in = in;
	tally_hear(&t, &m);
}

static void connection(const char *name)
{
	struct govern_msg m = { .kind = GOVERN_CONNECTION };

	snprintf(m.connection.name, sizeof(m.connection.name), "%s", name);
	tally_hear(&t, &m);
}

static void no_limits(uint64_t room[SESSION_METERS])
{
	for (size_t i = 0; i < SESSION_METERS; i++) {
		room[i] = SESSION_NO_LIMIT;
	}
}

static void test_differences(void **state)
{
	struct session_usage u;

	used(10, 100, 1000, 2000);
	used(15, 200, 1000, 2500);
	tally_take(&t, &u);
	assert_int_equal(u.meters[METER_CPU_MS], 15);
	assert_int_equal(u.meters[METER_WALL_MS], 200);
	assert_int_equal(u.meters[METER_BYTES_OUT], 1000);
	assert_int_equal(u.meters[METER_BYTES_IN], 2500);
	assert_int_equal(u.meters[METER_RUNS], 0);
	tally_settled(&t, true);
	assert_true(tally_empty(&t));
	used(14, 300, 1000, 2500); /* a clock that goes back makes nothing smaller */
	tally_take(&t, &u);
	assert_int_equal(u.meters[METER_CPU_MS], 0);
	assert_int_equal(u.meters[METER_WALL_MS], 100);
	tally_settled(&t, true);
}

static void test_a_failure_loses_nothing(void **state)
{
	struct govern_msg m = { .kind = GOVERN_VIOLATIONS };
	struct session_usage u;

	m.violations.total = 2;
	m.violations.kinds[EV_FILE_BLOCKED] = 2;
	m.violations.classes[CLASS_CREDENTIAL_HARVESTING] = 2;
	tally_hear(&t, &m);
	used(5, 0, 0, 0);
	connection("a.example");
	tally_take(&t, &u);
	used(7, 0, 0, 0);
	connection("b.example");
	assert_int_equal(u.report, 1);
	tally_settled(&t, false);
	assert_true(tally_repeats(&t) && !tally_empty(&t));
	tally_take(&t, &u); /* not settled: the same report, because the store may have it */
	assert_int_equal(u.report, 1);
	assert_int_equal(u.meters[METER_CPU_MS], 5);
	assert_int_equal(u.meters[METER_CONNECTIONS], 1);
	assert_int_equal(u.all_violations, 2);
	assert_int_equal(u.n_violations, 2);
	assert_string_equal(u.violations[0].name, "file_blocked");
	assert_int_equal(u.violations[0].n, 2);
	assert_string_equal(u.violations[1].name, "credential_harvesting");
	assert_int_equal(u.n_domains, 1);
	assert_string_equal(u.domains[0], "a.example");
	tally_settled(&t, true);
	assert_false(tally_repeats(&t) || tally_empty(&t));
	tally_take(&t, &u); /* only what came after the first report */
	assert_int_equal(u.report, 2);
	assert_int_equal(u.meters[METER_CPU_MS], 2);
	assert_int_equal(u.meters[METER_CONNECTIONS], 1);
	assert_int_equal(u.all_violations, 0);
	assert_int_equal(u.n_domains, 1);
	assert_string_equal(u.domains[0], "b.example");
	tally_settled(&t, true);
	assert_true(tally_empty(&t));
}

static void test_what_must_not_wait(void **state)
{
	struct session_usage u;
	uint64_t room[SESSION_METERS];

	no_limits(room);
	used(100, 100, 100, 100);
	assert_false(tally_urgent(&t, room));
	room[METER_BYTES_OUT] = 200;
	assert_false(tally_urgent(&t, room)); /* half of the limit is still free */
	room[METER_BYTES_OUT] = 199;
	assert_true(tally_urgent(&t, room));
	no_limits(room);
	connection("a.example");
	assert_true(tally_urgent(&t, room));
	tally_take(&t, &u);
	tally_settled(&t, true);
	connection("a.example"); /* a known name is not urgent */
	assert_false(tally_urgent(&t, room));
	assert_false(tally_empty(&t));
	tally_take(&t, &u);
	assert_int_equal(u.n_domains, 0);
	assert_int_equal(u.meters[METER_CONNECTIONS], 1);
	tally_settled(&t, true);
}

static void test_names_are_bounded(void **state)
{
	struct session_usage u;
	char name[32];

	for (int i = 0; i < MAX_TALLY_NAMES; i++) {
		assert_false(tally_full(&t));
		snprintf(name, sizeof(name), "n%d.example", i);
		connection(name);
	}
	assert_true(tally_full(&t)); /* no room for one more new name */
	tally_take(&t, &u);
	assert_int_equal(u.n_domains, MAX_TALLY_NAMES);
	assert_true(tally_full(&t));
	tally_settled(&t, true);
	assert_false(tally_full(&t));
	connection("one-more.example");
	tally_take(&t, &u);
	assert_int_equal(u.n_domains, 1);
	assert_string_equal(u.domains[0], "one-more.example");
	tally_settled(&t, true);
}

static void test_the_end_counts_what_follows(void **state)
{
	struct govern_msg m = { .kind = GOVERN_ENDED };
	struct session_usage u;

	m.ended.derived[CLASS_SUPPLY_CHAIN_ATTACK] = 1;
	tally_hear(&t, &m);
	tally_take(&t, &u);
	assert_int_equal(u.n_violations, 1);
	assert_string_equal(u.violations[0].name, "supply_chain_attack");
	assert_int_equal(u.all_violations, 0);
	tally_settled(&t, true);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_differences),
		T(test_a_failure_loses_nothing),
		T(test_what_must_not_wait),
		T(test_names_are_bounded),
		T(test_the_end_counts_what_follows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
