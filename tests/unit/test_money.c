/* test_money.c - amounts, times and words of sessions: each is read exactly or refused. */
#include <string.h>

#include "unit.h"
#include "base/json.h"
#include "base/own.h"
#include "session/money.h"
#include "session/policy.h"
#include "session/types.h"

static void money_is_exact(void **state)
{
	static const struct {
		const char *text;
		micros want;
	} ROWS[] = {
		{ "0", 0 },
		{ "0.0", 0 },
		{ "0e999", 0 },
		{ "5", 5000000 },
		{ "5.", 5000000 },
		{ ".5", 500000 },
		{ "0.50", 500000 },
		{ "0.1", 100000 },
		{ "0.3", 300000 },
		{ "0.000001", 1 },
		{ "1e-6", 1 },
		{ "10e-7", 1 },
		{ "1.5e-3", 1500 },
		{ "1.5E+3", 1500000000 },
		{ "123456789.123456", 123456789123456 },
		{ "0.5000000000000000000000000000000000000000", 500000 },
		{ "1000000000", MAX_MICROS },
		{ "1e9", MAX_MICROS },
		{ "1000000000.000000", MAX_MICROS },
		{ "0.00000000000000000000000000000000001e30", 10 },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		micros m = -1;
		const char *why = "";
		if (!money_parse(ROWS[i].text, &m, &why) || m != ROWS[i].want) {
			fail_msg("%s: %lld %s", ROWS[i].text, (long long)m, why);
		}
	}
}

static void money_is_refused(void **state)
{
	static const char NONE[] = "is not an amount of dollars, such as 0.50";
	static const char FINER[] = "is finer than a millionth of a dollar";
	static const char MORE[] = "is more than 1000000000 dollars";
	static const struct {
		const char *text;
		const char *why;
	} ROWS[] = {
		{ "-0", "is negative" },
		{ "-1", "is negative" },
		{ "-0.000001", "is negative" },
		{ "", NONE },
		{ ".", NONE },
		{ "e5", NONE },
		{ "5e", NONE },
		{ "5e+", NONE },
		{ "+5", NONE },
		{ " 5", NONE },
		{ "5 ", NONE },
		{ "$5", NONE },
		{ "5 USD", NONE },
		{ "1,5", NONE },
		{ "1_000", NONE },
		{ "1.2.3", NONE },
		{ "010", NONE },
		{ "00.5", NONE },
		{ "0x10", NONE },
		{ "nan", NONE },
		{ "NaN", NONE },
		{ "inf", NONE },
		{ "-inf", "is negative" },
		{ "Infinity", NONE },
		{ "1e5e5", NONE },
		{ "0.0000001", FINER },
		{ "1e-7", FINER },
		{ "1e-400", FINER },
		{ "1.0000001", FINER },
		{ "0.50000000000000000000000000000001", FINER },
		{ "1000000000.000001", MORE },
		{ "1000000001", MORE },
		{ "1e10", MORE },
		{ "1e400", MORE },
		{ "1e99999999999999999999", MORE },
		{ "9223372036854775807", MORE },
		{ "18446744073709551616", MORE },
		{ "99999999999999999999999999999999999999999999", MORE },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		micros m = 42;
		const char *why = "";
		if (money_parse(ROWS[i].text, &m, &why) || strcmp(why, ROWS[i].why) != 0) {
			fail_msg("'%s': %lld, %s", ROWS[i].text, (long long)m, why);
		}
		assert_int_equal(m, 42); /* a failure must not change it */
	}
	assert_false(money_parse("-1", &(micros){ 0 }, NULL));
}

static void money_is_shown(void **state)
{
	static const struct {
		micros m;
		const char *text;
		const char *show;
	} ROWS[] = {
		{ 0, "0.000000", "$0.00" },
		{ 1, "0.000001", "$0.000001" },
		{ 2100, "0.002100", "$0.0021" },
		{ 500000, "0.500000", "$0.50" },
		{ 5110000, "5.110000", "$5.11" },
		{ MAX_MICROS, "1000000000.000000", "$1000000000.00" },
		{ -1500000, "-1.500000", "-$1.50" },
		{ INT64_MAX, "9223372036854.775807", "$9223372036854.775807" },
		{ INT64_MIN, "-9223372036854.775808", "-$9223372036854.775808" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char out[MONEY_TEXT];
		assert_string_equal(json_millionths_text(ROWS[i].m, out), ROWS[i].text);
		assert_string_equal(money_show(ROWS[i].m, out), ROWS[i].show);
	}
}

/* Writing an amount with all its digits, and then parsing the text, must give the same amount. */
static void money_round_trip(void **state)
{
	uint64_t x = 88172645463325252ULL;
	for (int i = 0; i < 2000; i++) {
		char out[MONEY_TEXT];
		micros back = -1;
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		micros m = (micros)(x % (uint64_t)MAX_MICROS) >> (x % 50);
		assert_true(money_parse(json_millionths_text(m, out), &back, NULL));
		assert_int_equal(back, m);
		assert_true(money_parse(money_show(m, out) + 1, &back, NULL));
		assert_int_equal(back, m);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} ROWS[] = {
		{ "30m", 1800000 },
		{ "1.5h", 5400000 },
		{ "90", 90000 },
		{ "5s", 5000 },
		{ " 5S ", 5000 },
		{ "5 s", 5000 },
		{ "2M", 120000 },
		{ "1H", 3600000 },
		{ "0", 0 },
		{ "0s", 0 },
		{ "0.25", 250 },
		{ ".5m", 30000 },
		{ "1e2s", 100000 },
		{ "0.0001s", 1 }, /* rounded up, never to 0 */
		{ "8784h", 31622400000 },
		{ "8785h", -1 },
		{ "31622400.001", -1 },
		{ "", -1 },
		{ " ", -1 },
		{ "s", -1 },
		{ "500ms", -1 },
		{ "1d", -1 },
		{ "2h30m", -1 },
		{ "-5s", -1 },
		{ "-0", -1 },
		{ "+5", -1 },
		{ "nan", -1 },
		{ "nans", -1 },
		{ "inf", -1 },
		{ "infh", -1 },
		{ "1e400h", -1 },
		{ "1_0s", -1 },
		{ "5ss", -1 },
		{ "five", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		uint64_t ms = 42;
		bool good = session_duration_parse(ROWS[i].text, &ms);
		if (good != (ROWS[i].ms >= 0) || ms != (good ? (uint64_t)ROWS[i].ms : 42)) {
			fail_msg("'%s': %d %llu", ROWS[i].text, good, (unsigned long long)ms);
		}
	}
}

/* Compares the allowed change from each state to each other state with PICTURE. Its columns are the
 * new states: active, alert (l), paused, killed, completed, expired. */
static void transitions(void **state)
{
	static const char *const PICTURE[SESSION_STATES] = {
		/*                     to  a l p k c e */
		[SESSION_ACTIVE] = "    - x x x x x", [SESSION_ALERT] = "     - - x x x x",
		[SESSION_PAUSED] = "    x x - x x x", [SESSION_KILLED] = "    - - - - - -",
		[SESSION_COMPLETED] = " - - - - - -", [SESSION_EXPIRED] = "   - - - - - -",
	};

	for (unsigned from = 0; from < SESSION_STATES; from++) {
		const char *p = PICTURE[from] + strspn(PICTURE[from], " ");
		for (unsigned to = 0; to < SESSION_STATES; to++) {
			bool may = session_may_become((enum session_state)from,
			                              (enum session_state)to);
			if (may != (p[2 * to] == 'x')) {
				fail_msg("%s to %s: %d",
				         session_state_name((enum session_state)from),
				         session_state_name((enum session_state)to), may);
			}
		}
	}
}

static void names(void **state)
{
	static const char *const STATES[] = { "active", "alert",     "paused",
		                              "killed", "completed", "expired" };
	static const char *const ACTS[] = { "log", "alert", "block", "pause", "kill" };
	static const char *const METERS[] = { "runs",      "cpu_seconds", "wall_seconds",
		                              "bytes_out", "bytes_in",    "connections",
		                              "domains" };

	for (int i = 0; i < SESSION_STATES; i++) {
		assert_string_equal(session_state_name((enum session_state)i), STATES[i]);
	}
	for (int i = 0; i < SESSION_ACTS; i++) {
		assert_string_equal(session_act_name((enum session_act)i), ACTS[i]);
	}
	for (int i = 0; i < SESSION_METERS; i++) {
		assert_string_equal(session_meter_name((enum session_meter)i), METERS[i]);
	}
}

static void ids(void **state)
{
	static const char *const GOOD[] = {
		"a",
		"0",
		"Agent-7",
		"a.b_c-d",
		"0b8e8f0e-1111-4222-8333-444455556666",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 64 */
	};
	static const char *const BAD[] = {
		"",    ".",
		"..",  "-a",
		"_a",  ".a",
		"a/b", "a b",
		"a\n", "\xc3\xa4",
		"a;b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 65 */
	};

	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		assert_true(session_id_valid(GOOD[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		if (session_id_valid(BAD[i])) {
			fail_msg("'%s' is taken", BAD[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(money_is_exact), cmocka_unit_test(money_is_refused),
		cmocka_unit_test(money_is_shown), cmocka_unit_test(money_round_trip),
		cmocka_unit_test(durations),      cmocka_unit_test(transitions),
		cmocka_unit_test(names),          cmocka_unit_test(ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
