/* test_session_runs.c - the runs of a session and what they use, messages to the owner, and the
 * effects of a damaged store. The tests run on SQLite, and also on PostgreSQL if SSB_TEST_POSTGRES
 * names a server. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/meter.h"
#include "session/act.h"
#include "session/place.h"
#include "session_tests.h"

/* ---- runs ---------------------------------------------------------------- */

static int count_run(void *arg, const struct session_run *r)
{
	assert_string_equal(r->host, "here");
	*(size_t *)arg += 1;
	return 0;
}

static size_t live_runs(const char *name)
{
	struct ssb_error err = { 0 };
	size_t n = 0;

	assert_int_equal(session_runs(w.ss, world_id(name), count_run, &n, &err), 0);
	return n;
}

static struct session_run begin(const char *name, bool allowed)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_run run = { .host = "here", .boot_id = "b", .keeper = 7, .socket = "s" };

	if (session_run_begin(w.ss, world_id(name), &run, &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(d.verdict.allowed, allowed);
	assert_int_equal(run.n != 0, allowed);
	return run;
}

/* Begins a run whose init is a child of this test and whose keeper does not exist. */
static pid_t begin_real(const char *name)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_run run = { .keeper = 7, .socket = "gone" };
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	run.init = pid;
	run.init_start = meter_started(pid);
	assert_int_equal(place_here(&run, &err), 0);
	assert_int_equal(session_run_begin(w.ss, world_id(name), &run, &d, &err), 0);
	assert_true(d.verdict.allowed);
	return pid;
}

static bool is_killed(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

/* An action exceeds the budget, which ends the session: the session's run is killed before
 * session_check() returns. */
static void test_enforced(void **state)
{
	static const char BUDGET[] = "budget:\n  max_cost_per_session: 1.00\n"
	                             "  max_cost_per_action: 2.00\n  on_exceed: kill\n";
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("enforced", NULL, BUDGET);
	pid_t run = begin_real("enforced");
	assert_int_equal(session_check(w.ss, world_id("enforced"), "x", USD(0.5), &d, &err), 0);
	assert_false(is_killed(run)); /* this action stays within the budget */
	(void)session_check(w.ss, world_id("enforced"), "x", USD(0.9), &d, &err);
	assert_true(is_killed(run));
	assert_int_equal(d.runs.runs, 1);
	assert_int_equal(d.runs.forced, 1);
	assert_int_equal(d.undone.code, SSB_OK);
	assert_int_equal(world_lines("enforced", "run_ended"), 1);

	/* After session_defer(), the caller must carry out kills itself. If it does not, they are
	 * carried out when the store is closed. */
	world_start("deferred", NULL, BUDGET);
	run = begin_real("deferred");
	session_defer(w.ss);
	(void)session_check(w.ss, world_id("deferred"), "x", USD(1.1), &d, &err);
	assert_int_equal(d.state, SESSION_KILLED);
	assert_false(is_killed(run));
	world_reopen();
	assert_true(is_killed(run));

	/* The caller carries out a deferred kill with session_act(). */
	world_start("taken", NULL, BUDGET);
	run = begin_real("taken");
	session_defer(w.ss);
	(void)session_check(w.ss, world_id("taken"), "x", USD(1.1), &d, &err);
	assert_true(session_deferred(w.ss, &d));
	assert_false(session_deferred(w.ss, &d));
	assert_false(is_killed(run));
	session_act(w.ss, &w.owner, &d, NULL);
	assert_true(is_killed(run));
	world_reopen();
}

static void test_runs(void **state)
{
	struct ssb_error err = { 0 };

	world_start("runs", NULL, "limits:\n  runs:\n    max: 2\n    on_exceed: block\n");
	world_start("runs-in", "runs", "");
	struct session_run a = begin("runs", true);
	struct session_run b = begin("runs-in", true);
	begin("runs-in", false); /* refused by the parent's limit of runs */
	assert_int_equal(live_runs("runs"), 2);
	assert_int_equal(live_runs("runs-in"), 1);
	a.init = 12;
	a.init_start = 34;
	assert_int_equal(session_run_placed(w.ss, &a, &err), 0);
	assert_int_equal(session_run_end(w.ss, &a, 3, "exited", &err), 0);
	assert_int_equal(live_runs("runs"), 1);
	/* The end of a run is recorded once, even if two processes report it. */
	assert_int_equal(session_run_end(w.ss, &a, 4, "exited", &err), 0);
	assert_int_equal(world_lines("runs", "run_ended"), 1);
	assert_int_equal(session_run_placed(w.ss, &a, &err), -1);
	world_become("runs", SESSION_KILLED, "");
	begin("runs-in", false);
	assert_int_equal(session_run_end(w.ss, &b, 125, "session", &err), 0);
	assert_int_equal(live_runs("runs"), 0);
	assert_int_equal(world_get("runs").meters[METER_RUNS], 2);
	auto_free char *text = world_ledger("runs-in");
	assert_int_equal(world_verify(text, strlen(text)).state, VERIFY_COMPLETE);
}

static void test_usage(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	static const char *const DOMAINS[] = { "a.example", "b.example", "a.example" };

	world_start("used", NULL,
	            "limits:\n  bytes_out:\n    max: 1000\n    on_exceed: kill\n"
	            "  domains:\n    max: 2\n    on_exceed: pause\n");
	world_start("used-in", "used", "");
	struct session_run run = begin("used-in", true);
	struct session_usage u = { .meters = { [METER_BYTES_OUT] = 700, [METER_CPU_MS] = 1500 },
		                   .domains = DOMAINS,
		                   .n_domains = 3 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.meters[METER_BYTES_OUT], 700);
	assert_int_equal(d.after.meters[METER_DOMAINS], 2);
	assert_int_equal(world_get("used").meters[METER_DOMAINS], 2);
	/* An empty report adds no line. */
	u = (struct session_usage){ 0 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(world_lines("used-in", "usage"), 1);
	u.domains = DOMAINS;
	u.n_domains = 1;
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.meters[METER_DOMAINS], 2);
	u = (struct session_usage){ .meters = { [METER_BYTES_OUT] = 301 } };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_false(d.verdict.allowed);
	assert_string_equal(d.decided, world_id("used"));
	assert_int_equal(d.verdict.act, ACT_KILL);
	assert_true(d.changed);
	assert_int_equal(d.after.state, SESSION_KILLED);
	auto_free char *text = world_ledger("used-in");
	assert_non_null(strstr(text, "\"used\":{\"cpu_seconds\":1.500,\"bytes_out\":700}"));
}

/* One report with several violations of a kind has the same effect as several reports with one
 * violation. */
static void test_usage_violations(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_usage u = { .violations = { { "file_blocked", 5 },
		                                   { "credential_harvesting", 2 } },
		                   .n_violations = 2,
		                   .all_violations = 5 };

	world_start("classes", NULL,
	            "violations:\n  thresholds:\n    file_blocked: 3\n    stepped_over: 3\n"
	            "  on_threshold: alert\n"
	            "limits:\n  violations:\n    credential_harvesting:\n      max: 2\n"
	            "      on_exceed: kill\nkill_switch:\n  notify:\n"
	            "    - webhook: http://127.0.0.1:1/x\n");
	struct session_run run = begin("classes", true);
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.state, SESSION_ALERT);
	assert_true(d.notify);
	assert_int_equal(d.after.violations, 5);
	/* The session is in the state alert. A report with so many violations that it steps over
	 * the threshold still sends exactly one message. */
	u = (struct session_usage){ .violations = { { "stepped_over", 5 } }, .n_violations = 1 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_true(d.notify);
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_false(d.notify);
	u.n_violations = 0;
	u.violations[u.n_violations].name = "credential_harvesting";
	u.violations[u.n_violations++].n = 1;
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.state, SESSION_KILLED);
}

/* An agent cannot fill the store with invented kinds of violations: above a limit, further kinds
 * are counted as "other". */
static int last_count(void *arg, const char *name, uint64_t n)
{
	struct {
		size_t kinds;
		uint64_t others;
	} *q = arg;

	q->kinds++;
	q->others = strcmp(name, "other") == 0 ? n : q->others;
	return 0;
}

static void test_counts_are_capped(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct {
		size_t kinds;
		uint64_t others;
	} q = { 0 };

	world_start("made-up", NULL, "violations:\n  thresholds:\n    real: 1\n");
	for (int i = 0; i < STORE_MAX_COUNTS + 3; i += 32) {
		struct session_usage u = { .n_violations = 32, .all_violations = 32 };
		struct session_run run = { .n = 1 };
		char names[32][24];
		snprintf(run.session, sizeof(run.session), "%s", world_id("made-up"));
		for (int k = 0; k < 32; k++) {
			snprintf(names[k], sizeof(names[k]), "kind%d", i + k);
			u.violations[k].name = names[k];
			u.violations[k].n = 1;
		}
		assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	}
	assert_int_equal(session_counts(w.ss, world_id("made-up"), last_count, &q, &err), 0);
	assert_int_equal(q.kinds, STORE_MAX_COUNTS + 1);
	assert_int_equal(q.others, 32);
	/* A kind of violation that the policy names is always counted under its own name. */
	assert_int_equal(session_violation(w.ss, world_id("made-up"), "real", NULL, &d, &err), 0);
	assert_int_equal(d.state, SESSION_KILLED);
}

/* ---- messages ------------------------------------------------------------ */

static bool take_mine(struct outbox_item *ret)
{
	struct ssb_error err = { 0 };

	for (int i = 0; i < 1000; i++) {
		int got = outbox_take(w.ss, 60000, ret, &err);
		assert_int_not_equal(got, -1);
		if (got == 0) {
			return false;
		}
		if (strncmp(ret->session, w.prefix, strlen(w.prefix)) == 0 &&
		    strstr(ret->session, "outbox") != NULL) {
			return true;
		}
		outbox_item_done(ret); /* another test's message: stays leased */
	}
	fail_msg("the same message is given out again and again");
	return false;
}

static void test_outbox(void **state)
{
	struct ssb_error err = { 0 };
	struct outbox_item item = { 0 };

	world_now = 2000000000 * SECOND;
	world_start("outbox", NULL,
	            "kill_switch:\n  notify:\n    - webhook: https://h.example/secret/path\n");
	assert_false(take_mine(&item));
	world_become("outbox", SESSION_KILLED, "be gone");
	assert_true(take_mine(&item));
	assert_non_null(strstr(item.body, "\"event\":\"session_killed\""));
	assert_non_null(strstr(item.body, "\"reason\":\"be gone\""));
	assert_string_equal(item.url, "https://h.example/secret/path");
	struct outbox_item second = { 0 };
	assert_false(take_mine(&second)); /* none: the only message is leased */
	assert_int_equal(outbox_done(w.ss, &item, 503, "busy", 30000, &err), 0);
	outbox_item_done(&item);
	assert_false(take_mine(&item)); /* none: the message is not due yet */
	world_now += 30 * SECOND;
	assert_true(take_mine(&item));
	assert_int_equal(item.tries, 1);
	/* The process that leased the message died: when the lease ends, the message can be taken
	 * again. */
	outbox_item_done(&item);
	world_now += 60 * SECOND;
	assert_true(take_mine(&item));
	assert_int_equal(outbox_done(w.ss, &item, 200, NULL, 0, &err), 0);
	assert_int_equal(outbox_done(w.ss, &item, 200, NULL, 0, &err), -1);
	outbox_item_done(&item);
	world_now += 3600 * SECOND;
	assert_false(take_mine(&item));
	auto_free char *text = world_ledger("outbox");
	assert_non_null(
	        strstr(text, "\"status\":\"retry\",\"status_code\":503,\"error\":\"busy\""));
	assert_non_null(strstr(text, "\"url\":\"https://h.example\",\"event\":\"session_killed\","
	                             "\"status\":\"sent\""));
	assert_null(strstr(text, "secret"));
	assert_int_equal(world_verify(text, strlen(text)).state, VERIFY_COMPLETE);
	world_now = 0;
}

/* ---- damage -------------------------------------------------------------- */

static void test_damage(void **state)
{
	static const char *const DAMAGE[] = {
		"UPDATE sessions SET state = 6 WHERE id = $1",
		"UPDATE sessions SET state = -1 WHERE id = $1",
		"UPDATE sessions SET spent = -1 WHERE id = $1",
		"UPDATE sessions SET reserved = 9223372036854775807 WHERE id = $1",
		"UPDATE sessions SET actions = -5 WHERE id = $1",
		"UPDATE sessions SET bytes_in = -5 WHERE id = $1",
		"UPDATE sessions SET hash = 'xyz' WHERE id = $1",
		"UPDATE sessions SET seq = -1 WHERE id = $1",
		"UPDATE sessions SET policy = 'none' WHERE id = $1",
		"UPDATE sessions SET depth = 3 WHERE id = $1",
		"UPDATE sessions SET parent = n WHERE id = $1",
		"UPDATE sessions SET parent = 999999999 WHERE id = $1",
		"UPDATE sessions SET root = root + 1 WHERE id = $1",
		"UPDATE sessions SET created = -1 WHERE id = $1",
		"UPDATE sessions SET alerted = 2 WHERE id = $1",
	};

	for (size_t i = 0; i < ARRAY_LEN(DAMAGE); i++) {
		struct ssb_error err = { 0 };
		struct decision d = { 0 };
		char name[24];
		snprintf(name, sizeof(name), "damage%zu", i);
		world_start(name, NULL, "session:\n  max_duration: 1h\n");
		assert_true(world_check(name, 1).verdict.allowed);
		assert_int_equal(db_begin(w.ss->db, &err), 0);
		assert_int_equal(db_run(w.ss->db, DAMAGE[i], DB_ARGS(DB_T(world_id(name))), NULL,
		                        NULL, &err),
		                 0);
		assert_int_equal(db_changes(w.ss->db), 1);
		assert_int_equal(db_commit(w.ss->db, &err), 0);
		assert_int_equal(session_check(w.ss, world_id(name), "x", 1, &d, &err), -1);
		assert_int_equal(err.code, SSB_E_SYS);
		assert_non_null(strstr(err.text, "damaged"));
		assert_int_equal(d.verdict.code, VERDICT_NONE);
	}
}

/* If a child session in the store is damaged, the other sessions of its tree can still be ended. */
static void test_damaged_child(void **state)
{
	struct ssb_error err = { 0 };

	world_start("dp", NULL, "");
	world_start("dc", "dp", "");
	world_start("dd", "dp", "");
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE sessions SET spent = -1 WHERE id = $1",
	                        DB_ARGS(DB_T(world_id("dc"))), NULL, NULL, &err),
	                 0);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	world_become("dp", SESSION_KILLED, "");
	assert_int_equal(world_get("dd").state, SESSION_KILLED);
	auto_free char *text = world_ledger("dp");
	assert_non_null(strstr(text, "\"damaged_descendants\":1"));
}

/* If the policy of a session is changed in the store, the session cannot be used until the original
 * is restored. */
static void test_policy_is_its_own(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("policy", NULL, "budget:\n  max_cost_per_session: 0.125\n");
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE policies SET source = $1 WHERE source = $2",
	                        DB_ARGS(DB_T("budget:\n  max_cost_per_session: 1000\n"),
	                                DB_T("budget:\n  max_cost_per_session: 0.125\n")),
	                        NULL, NULL, &err),
	                 0);
	assert_int_equal(db_changes(w.ss->db), 1);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	world_reopen();
	assert_int_equal(session_check(w.ss, world_id("policy"), "x", 1, &d, &err), -1);
	assert_non_null(strstr(err.text, "policy"));
	err = (struct ssb_error){ 0 };
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE policies SET source = $1 WHERE source = $2",
	                        DB_ARGS(DB_T("budget:\n  max_cost_per_session: 0.125\n"),
	                                DB_T("budget:\n  max_cost_per_session: 1000\n")),
	                        NULL, NULL, &err),
	                 0);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	assert_false(world_check("policy", USD(0.2)).verdict.allowed);
}

static void test_texts(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char longest[STORE_TEXT + 1];
	static const char *const BAD[] = { "", "a\nb", "\xff", "\xed\xa0\x80", "a\x7f" };

	world_start("texts", NULL, "");
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		err = (struct ssb_error){ 0 };
		assert_int_equal(session_check(w.ss, world_id("texts"), BAD[i], 1, &d, &err), -1);
		assert_int_equal(err.code, SSB_E_USAGE);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[STORE_TEXT] = '\0';
	assert_int_equal(session_check(w.ss, world_id("texts"), longest, 1, &d, &err), -1);
	longest[STORE_TEXT - 1] = '\0';
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_check(w.ss, world_id("texts"), longest, 1, &d, &err), 0);
	assert_int_equal(session_check(w.ss, "../x", "a", 1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_enforced),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_usage_violations),
		cmocka_unit_test(test_counts_are_capped),
		cmocka_unit_test(test_outbox),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_damaged_child),
		cmocka_unit_test(test_policy_is_its_own),
		cmocka_unit_test(test_texts),
	};

	return ON_EACH_STORE(tests, open_world);
}
