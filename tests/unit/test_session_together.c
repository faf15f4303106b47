/* test_session_together.c - sessions of one tree, runs of one session, and processes or machines
 * that share a store: each sees the changes of the others. The tests run on SQLite, and also on
 * PostgreSQL if SSB_TEST_POSTGRES names a server. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/file.h"
#include "session_tests.h"

static int64_t clock_fast_s;
static unsigned sleeps;

/* Changes the clock of this process only. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
	long rc = syscall(SYS_clock_gettime, id, ret);

	if (rc == 0 && id == CLOCK_REALTIME) {
		ret->tv_sec += clock_fast_s;
	}
	return (int)rc;
}

/* Counts the sleeps. Their time would prove nothing on a slow machine. */
int nanosleep(const struct timespec *t, struct timespec *ret_left)
{
	sleeps++;
	return (int)syscall(SYS_nanosleep, t, ret_left);
}

static struct decision become(const char *name, enum session_state to)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	if (session_become(w.ss, world_id(name), to, "told so", &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return d;
}

static struct session_run begin(const char *name)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_run run = { .host = "here", .boot_id = "b", .keeper = 7, .socket = "s" };

	if (session_run_begin(w.ss, world_id(name), &run, &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
	assert_true(d.verdict.allowed);
	return run;
}

static struct decision used(const struct session_run *run, const struct session_usage *u)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	if (session_run_used(w.ss, run, u, &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return d;
}

static void sql(const char *text, const char *name)
{
	struct ssb_error err = { 0 };

	if (db_begin(w.ss->db, &err) != 0 ||
	    db_run(w.ss->db, text, DB_ARGS(DB_T(world_id(name))), NULL, NULL, &err) != 0 ||
	    db_commit(w.ss->db, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

/* ---- reservations of a tree ---------------------------------------------- */

/* If a child never settles a reservation, the reservation times out for its parent, too. */
static void test_dead_reservation_of_a_child(void **state)
{
	world_now = 1000 * SECOND;
	world_start("dr", NULL,
	            "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 1\n"
	            "  on_timeout: release\n");
	static const char CHILD[] = "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 1\n"
	                            "  reservation_timeout: 1s\n  on_timeout: release\n";
	world_start("dr-c", "dr", CHILD);
	world_start("dr-g", "dr-c", CHILD);
	assert_true(world_check("dr-g", USD(0.9)).verdict.allowed);
	assert_int_equal(world_get("dr").reserved, USD(0.9));
	world_now += SECOND + SECOND / 2;
	struct decision d = world_check("dr", USD(0.5));
	assert_true(d.verdict.allowed);
	/* this state comes from the grandchild's check */
	assert_int_equal(d.after.state, SESSION_ALERT);
	assert_int_equal(d.after.reserved, USD(0.5));
	assert_int_equal(world_get("dr-c").reserved, 0);
	assert_int_equal(world_lines("dr-g", "action_settled"), 1);
	auto_free char *text = world_ledger("dr");
	assert_non_null(strstr(text, "\"event\":\"action_settled\",\"changed\":{"
	                             "\"reserved_usd\":-0.900000}"));
	world_now = 0;
}

/* When a reservation of a sibling times out, the policy of each session decides whether the session
 * releases or charges it. */
static void test_dead_reservation_of_a_sibling(void **state)
{
	world_now = 1000 * SECOND;
	world_start("ds", NULL, "budget:\n  on_timeout: charge\n");
	world_start("ds-a", "ds", "budget:\n  reservation_timeout: 1s\n  on_timeout: release\n");
	world_start("ds-b", "ds", "");
	int64_t r = world_check("ds-a", USD(0.25)).reservation;
	world_now += 2 * SECOND;
	world_check("ds-b", USD(0.1));
	assert_int_equal(world_get("ds").reserved, USD(0.1));
	assert_int_equal(world_get("ds").spent, USD(0.25));
	assert_int_equal(world_get("ds-a").spent, 0);
	world_settle(r, USD(0.2));
	assert_int_equal(world_get("ds").spent, USD(0.2));
	assert_int_equal(world_get("ds-a").spent, USD(0.2));
	world_now = 0;
}

/* A damaged session keeps its reservation. Reservations of other sessions still time out. */
static void test_dead_reservation_of_the_damaged(void **state)
{
	world_now = 1000 * SECOND;
	world_start("dd", NULL, "");
	world_start("dd-a", "dd", "budget:\n  reservation_timeout: 1s\n");
	world_start("dd-b", "dd", "budget:\n  reservation_timeout: 1s\n");
	world_check("dd-a", USD(0.25));
	world_check("dd-b", USD(0.5));
	sql("UPDATE sessions SET spent = -1 WHERE id = $1", "dd-a");
	world_now += 2 * SECOND;
	assert_true(world_check("dd", USD(0.1)).verdict.allowed);
	assert_int_equal(world_get("dd").spent, USD(0.5));
	assert_int_equal(world_get("dd").reserved, USD(0.35));
	world_now = 0;
}

/* A caller with one session cannot settle the reservations of another. */
static void test_numbers_cannot_be_guessed(void **state)
{
	int64_t n[8];
	uint64_t high = 0;

	world_start("guess", NULL, "");
	for (size_t i = 0; i < ARRAY_LEN(n); i++) {
		n[i] = world_check("guess", 1).reservation;
		assert_true(n[i] > 0);
		high |= (uint64_t)n[i];
		for (size_t k = 0; k < i; k++) {
			assert_true(llabs(n[i] - n[k]) > 1000000);
		}
	}
	/* reservation numbers are random, so the highest bits are used, too */
	assert_true(high >> 50 != 0 && high <= MAX_RESERVATION);
	for (size_t i = 0; i < ARRAY_LEN(n); i++) {
		world_settle(n[i], 1);
	}
	assert_int_equal(world_get("guess").spent, 8);
}

/* ---- which sessions a decision changes -------------------------------------- */

/* A late settlement in an expired session exceeds the budget of its parent: the parent is
 * killed. */
static void test_acts_on_the_parent(void **state)
{
	world_now = 1000 * SECOND;
	world_start("ap", NULL,
	            "budget:\n  max_cost_per_session: 1\nkill_switch:\n  grace_period: 7s\n");
	world_start("ap-c", "ap", "session:\n  max_duration: 10s\n");
	int64_t r = world_check("ap-c", USD(0.1)).reservation;
	world_now += 11 * SECOND;
	struct decision d = world_settle(r, USD(5));
	assert_string_equal(d.decided, world_id("ap"));
	assert_string_equal(session_code_name(d.verdict.code), "max_cost_per_session");
	assert_int_equal(d.state, SESSION_KILLED);
	assert_int_equal(d.n_acted, 1);
	assert_string_equal(d.acted[0].id, world_id("ap"));
	assert_int_equal(d.acted[0].state, SESSION_KILLED);
	assert_int_equal(d.acted[0].grace_ms, 7000);
	assert_int_equal(world_get("ap-c").state, SESSION_EXPIRED);
	world_now = 0;
}

/* One settlement pauses the parent and kills the child: the decision lists both. */
static void test_acts_on_both(void **state)
{
	world_start("ab", NULL, "budget:\n  max_cost_per_session: 1\n  on_exceed: pause\n");
	world_start("ab-m", "ab", "");
	world_start("ab-c", "ab-m",
	            "budget:\n  max_cost_per_session: 0.5\n"
	            "kill_switch:\n  grace_period: 3s\n");
	int64_t r = world_check("ab-c", USD(0.1)).reservation;
	struct decision d = world_settle(r, USD(5));
	assert_int_equal(d.n_acted, 2);
	assert_string_equal(d.acted[0].id, world_id("ab"));
	assert_int_equal(d.acted[0].state, SESSION_PAUSED);
	assert_int_equal(d.acted[0].grace_ms, 0);
	assert_string_equal(d.acted[1].id, world_id("ab-c"));
	assert_int_equal(d.acted[1].state, SESSION_KILLED);
	assert_int_equal(d.acted[1].grace_ms, 3000);
	assert_int_equal(world_get("ab").state, SESSION_PAUSED);
	assert_int_equal(world_get("ab-m").state, SESSION_PAUSED);
	assert_int_equal(world_get("ab-c").state, SESSION_KILLED);
}

/* If a session and its parent both refuse an action for the same reason, the parent's refusal is
 * reported. An action that the parent refuses causes no alert in the child. */
static void test_the_outer_decides(void **state)
{
	static const char ONE[] =
	        "budget: {max_cost_per_session: 1, max_cost_per_action: 2, on_exceed: block}\n";
	static const char TWO[] =
	        "budget: {max_cost_per_session: 2, max_cost_per_action: 2, alert_at: 0.5}\n";

	world_start("o1", NULL, ONE);
	world_start("o2", "o1", ONE);
	world_start("o3", "o1", TWO);
	struct decision d = world_check("o2", USD(1.5));
	assert_string_equal(session_code_name(d.verdict.code), "max_cost_per_session");
	assert_string_equal(d.decided, world_id("o1"));
	d = world_check("o3", USD(1.5));
	assert_false(d.verdict.allowed); /* without its parent, o3 would only give an alert */
	assert_string_equal(d.decided, world_id("o1"));
	assert_int_equal(d.after.state, SESSION_ACTIVE);
	assert_int_equal(world_lines("o3", "budget_alert"), 0);
}

static void test_acts_of_the_owner(void **state)
{
	static const enum session_state TO[] = { SESSION_PAUSED, SESSION_ACTIVE, SESSION_KILLED };

	world_start("ao", NULL, "budget:\n  max_cost_per_session: 1\n");
	world_start("ao-c", "ao", "");
	for (size_t i = 0; i < ARRAY_LEN(TO); i++) {
		struct decision d = become("ao", TO[i]);
		assert_int_equal(d.n_acted, 1);
		assert_string_equal(d.acted[0].id, world_id("ao"));
		assert_int_equal(d.acted[0].state, TO[i]);
		assert_int_equal(d.acted[0].grace_ms, 0);
	}
	/* An alert changes no run, so the decision lists no session. */
	world_start("ao-alert", NULL,
	            "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 1\n");
	struct decision d = world_check("ao-alert", USD(0.9));
	assert_true(d.changed);
	assert_int_equal(d.state, SESSION_ALERT);
	assert_int_equal(d.n_acted, 0);
}

/* ---- lines about a child in the ledger of its parent ------------------------- */

/* Every change of a parent's totals by a child adds a line with the change to the parent's
 * ledger. */
static void test_parent_accounts(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	static const char *const WANT[] = {
		"\"event\":\"action_allowed\",\"changed\":{\"reserved_usd\":0.400000,\"actions\":"
		"1}",
		"\"event\":\"action_settled\",\"changed\":{\"spent_usd\":0.300000,"
		"\"reserved_usd\":-0.400000}",
		"\"event\":\"violation\",\"changed\":{\"violations\":1}",
		"\"event\":\"run_begun\",\"changed\":{\"runs\":1}",
		"\"event\":\"usage\",\"changed\":{\"cpu_seconds\":1.500,\"bytes_out\":700}",
	};

	world_start("pa", NULL, "");
	world_start("pa-c", "pa", "");
	world_settle(world_check("pa-c", USD(0.4)).reservation, USD(0.3));
	assert_int_equal(session_violation(w.ss, world_id("pa-c"), "x", NULL, &d, &err), 0);
	struct session_run run = begin("pa-c");
	used(&run, &(struct session_usage){
	                   .meters = { [METER_CPU_MS] = 1500, [METER_BYTES_OUT] = 700 } });
	/* A refused action changes nothing and adds no line. */
	assert_false(world_check("pa-c", USD(0.6)).verdict.allowed);
	auto_free char *text = world_ledger("pa");
	const char *at = text;
	for (size_t i = 0; i < ARRAY_LEN(WANT); i++) {
		at = strstr(at, WANT[i]);
		assert_non_null(at);
	}
	char child[96];
	snprintf(child, sizeof(child), "\"child\":\"%s\"", world_id("pa-c"));
	assert_non_null(strstr(text, child));
	assert_int_equal(world_lines("pa", "child"), ARRAY_LEN(WANT));
	assert_int_equal(world_lines("pa-c", "child"), 0);
	assert_non_null(strstr(at, "\"snapshot\":{\"state\":\"active\",\"spent_usd\":0.300000,"
	                           "\"reserved_usd\":0.000000,\"actions\":1,\"violations\":1,"
	                           "\"runs\":1,\"cpu_seconds\":1.500,\"bytes_out\":700}"));
}

/* Requests to a session that is over are counted, but add no lines to the ledger. */
static void test_over_does_not_grow(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start("og", NULL, "");
	int64_t r = world_check("og", USD(0.1)).reservation;
	become("og", SESSION_KILLED);
	assert_false(world_check("og", 1).verdict.allowed);
	auto_free char *first = world_ledger("og");
	for (int i = 0; i < 20; i++) {
		struct session_run run = { .host = "here", .boot_id = "b", .socket = "s" };
		assert_false(world_check("og", 1).verdict.allowed);
		assert_int_equal(session_violation(w.ss, world_id("og"), "x", NULL, &d, &err), 0);
		assert_int_equal(session_run_begin(w.ss, world_id("og"), &run, &d, &err), 0);
		assert_false(d.verdict.allowed);
	}
	auto_free char *later = world_ledger("og");
	assert_string_equal(first, later);
	assert_int_equal(world_get("og").refused, 61);
	assert_int_equal(world_get("og").violations, 20);
	/* A settlement does add a line, and the line contains the number of refused requests. */
	world_settle(r, USD(0.1));
	auto_free char *billed = world_ledger("og");
	assert_non_null(strstr(billed, "\"refused\":61"));
}

/* ---- locked copies --------------------------------------------------------- */

static char *slurp(const char *path)
{
	struct buf out;
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(&out, 16 << 20);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &out), 0);
	return buf_steal(&out);
}

/* Another process has locked a copy: no call waits for it. When the lock is released, the copy gets
 * all missing lines in order. */
static void test_locked_copy(void **state)
{
	char yaml[320];
	char path[160];
	char other[160];

	snprintf(path, sizeof(path), "%s/locked.jsonl", w.dir);
	snprintf(other, sizeof(other), "%s/free.jsonl", w.dir);
	snprintf(yaml, sizeof(yaml),
	         "session:\n  max_actions: 5000\naudit:\n  export:\n    - file: %s\n    - file: "
	         "%s\n",
	         path, other);
	assert_string_equal(world_start("lc", NULL, yaml).warning, "");
	auto_fd fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	sleeps = 0;
	for (int i = 0; i < 20; i++) {
		struct decision d = world_check("lc", 1);
		assert_true(d.verdict.allowed);
		assert_non_null(strstr(d.warning, "locked"));
	}
	assert_int_equal(sleeps, 0);
	auto_free char *copy = slurp(path);
	auto_free char *whole = slurp(other);
	auto_free char *ledger = world_ledger("lc");
	assert_string_equal(whole, ledger);
	assert_true(strlen(copy) < strlen(ledger));
	assert_int_equal(flock(fd, LOCK_UN), 0);
	/* Reading the session writes the missing lines. */
	world_get("lc");
	auto_free char *caught_up = slurp(path);
	assert_string_equal(caught_up, ledger);
	/* So many lines do not fit into one write to the copy. */
	assert_int_equal(flock(fd, LOCK_EX), 0);
	for (int i = 0; i < 1100; i++) {
		world_check("lc", 1);
	}
	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_string_equal(world_check("lc", 1).warning, "");
	assert_string_equal(become("lc", SESSION_KILLED).warning, "");
	auto_free char *last = slurp(path);
	auto_free char *all = world_ledger("lc");
	assert_string_equal(last, all);
}

/* ---- runs ---------------------------------------------------------------- */

/* A process sends a report again because it got no answer: the report counts once. */
static void test_repeated_report(void **state)
{
	static const char *const DOMAINS[] = { "a.example" };
	struct session_usage u = { .report = 1,
		                   .meters = { [METER_BYTES_OUT] = 700 },
		                   .violations = { { "file_blocked", 2 } },
		                   .n_violations = 1,
		                   .all_violations = 2,
		                   .domains = DOMAINS,
		                   .n_domains = 1 };

	world_start("rr", NULL, "limits:\n  bytes_out:\n    max: 1500\n    on_exceed: block\n");
	world_start("rr-c", "rr", "");
	struct session_run run = begin("rr-c");
	struct session_run other = begin("rr-c");
	for (int i = 0; i < 3; i++) {
		struct decision d = used(&run, &u);
		assert_true(d.verdict.allowed);
		assert_int_equal(d.after.meters[METER_BYTES_OUT], 700);
		assert_int_equal(d.after.violations, 2);
	}
	assert_int_equal(world_get("rr").meters[METER_BYTES_OUT], 700);
	assert_int_equal(world_lines("rr-c", "usage"), 1);
	/* Each run has its own report numbers. A report without a number always counts. */
	used(&other, &u);
	assert_int_equal(world_get("rr").meters[METER_BYTES_OUT], 1400);
	u.report = 2;
	struct decision d = used(&run, &u);
	assert_false(d.verdict.allowed);
	assert_int_equal(d.after.meters[METER_BYTES_OUT], 2100);
	/* The repeated report gets the same answer as the first. */
	d = used(&run, &u);
	assert_false(d.verdict.allowed);
	assert_int_equal(d.after.meters[METER_BYTES_OUT], 2100);
	u.report = 0;
	d = used(&run, &u);
	assert_int_equal(d.after.meters[METER_BYTES_OUT], 2800);
}

/* When a limit with "block" is exceeded, the next report of every run of the session is answered
 * with a refusal. */
static void test_block_holds_for_all_runs(void **state)
{
	struct session_usage u = { .meters = { [METER_WALL_MS] = 2000 } };
	struct session_usage none = { 0 };

	world_start("bh", NULL, "limits:\n  wall_seconds:\n    max: 3\n    on_exceed: block\n");
	struct session_run a = begin("bh");
	struct session_run b = begin("bh");
	struct session_run c = begin("bh");
	assert_true(used(&a, &u).verdict.allowed);
	assert_false(used(&b, &u).verdict.allowed);
	struct decision d = used(&c, &u);
	assert_false(d.verdict.allowed);
	assert_int_equal(d.verdict.act, ACT_BLOCK);
	assert_string_equal(session_code_name(d.verdict.code), "wall_seconds");
	assert_int_equal(d.after.state, SESSION_ALERT); /* alert_at was passed in the same report */
	assert_false(used(&a, &none).verdict.allowed);
}

/* ---- clocks -------------------------------------------------------------- */

/* The clock of one machine is fast: with PostgreSQL, the server's clock decides, so reservations do
 * not time out early. With SQLite there is only one machine, and its clock decides. */
static void test_whose_clock(void **state)
{
	world_start("wc", NULL,
	            "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 1\n"
	            "  on_exceed: block\n  reservation_timeout: 60s\n  on_timeout: release\n"
	            "session:\n  max_duration: 10h\n");
	int64_t (*now)(void) = w.ss->now;
	w.ss->now = NULL;
	assert_true(world_check("wc", USD(0.9)).verdict.allowed);
	clock_fast_s = 3600;
	bool passed = world_check("wc", USD(0.9)).verdict.allowed;
	clock_fast_s = 0;
	w.ss->now = now;
	assert_int_equal(passed, store == NULL);
}

struct waiter {
	pthread_t thread;
	struct session_store *ss;
	struct outbox_item item;
	struct decision d;
	const char *id;
	int rc;
};

static struct waiter open_waiter(void)
{
	struct waiter r = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(session_store_open(&w.owner, &r.ss, &err), 0);
	return r;
}

/* After another process, or a child session, has changed a session, this process must not use its
 * cached values. */
static void test_two_take_turns(void **state)
{
	struct ssb_error err = { 0 };
	struct waiter other = open_waiter();
	struct decision d = { 0 };

	world_start("tt", NULL, "budget:\n  max_cost_per_session: 10\n  on_exceed: block\n");
	world_start("tt-child", "tt", "budget:\n  max_cost_per_session: 1\n");
	for (int i = 1; i <= 3; i++) {
		assert_true(world_check("tt", USD(0.1)).verdict.allowed);
		assert_int_equal(
		        session_check(other.ss, world_id("tt"), "there", USD(0.2), &d, &err), 0);
		assert_true(world_check("tt-child", USD(0.3)).verdict.allowed);
		d = world_check("tt", USD(0.4));
		assert_int_equal(d.after.spent + d.after.reserved, i * USD(1));
		d = world_settle(d.reservation, USD(0.4));
		assert_int_equal(d.after.spent + d.after.reserved, i * USD(1));
	}
	assert_int_equal(
	        session_become(other.ss, world_id("tt"), SESSION_KILLED, "there", &d, &err), 0);
	assert_false(world_check("tt", 1).verdict.allowed);
	session_store_close(other.ss);
}

static void nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

static void *check_there(void *arg)
{
	struct waiter *r = arg;
	struct ssb_error err = { 0 };

	r->rc = session_check(r->ss, r->id, "x", USD(0.9), &r->d, &err);
	return NULL;
}

/* A check reads the time after it has got the lock of the tree, not before it waits for the
 * lock. */
static void test_time_after_the_lock(void **state)
{
	struct ssb_error err = { 0 };
	struct waiter r = open_waiter();

	world_start("tl", NULL,
	            "budget:\n  max_cost_per_session: 1\n  max_cost_per_action: 1\n"
	            "  on_exceed: block\n  reservation_timeout: 1s\n  on_timeout: release\n");
	w.ss->now = NULL;
	assert_true(world_check("tl", USD(0.9)).verdict.allowed);
	{
		AUTO(call_done) struct call c = { 0 };
		r.id = world_id("tl");
		assert_int_equal(call_begin(&c, w.ss, &err), 0);
		assert_int_equal(call_load(&c, r.id, &err), 0);
		assert_int_equal(pthread_create(&r.thread, NULL, check_there, &r), 0);
		nap_ms(1300);
	}
	assert_int_equal(pthread_join(r.thread, NULL), 0);
	assert_int_equal(r.rc, 0);
	assert_true(r.d.verdict.allowed);
	session_store_close(r.ss);
	world_reopen();
}

/* ---- messages ------------------------------------------------------------ */

static void *take_there(void *arg)
{
	struct waiter *r = arg;
	struct ssb_error err = { 0 };

	while ((r->rc = outbox_take(r->ss, 60000, &r->item, &err)) == 1 &&
	       strcmp(r->item.session, r->id) != 0) {
		outbox_item_done(&r->item); /* another test's message: stays leased */
	}
	return NULL;
}

/* While this process waits for the lock to lease a message, another process delivers the message:
 * this process must not take it. */
static void test_delivered_is_not_leased(void **state)
{
	struct ssb_error err = { 0 };
	struct waiter r = open_waiter();

	world_start("dl", NULL, "kill_switch:\n  notify:\n    - webhook: http://127.0.0.1:1/x\n");
	become("dl", SESSION_KILLED);
	r.id = world_id("dl");
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db,
	                        "UPDATE outbox SET state = 1, leased = 0 WHERE session IN"
	                        " (SELECT n FROM sessions WHERE id = $1)",
	                        DB_ARGS(DB_T(r.id)), NULL, NULL, &err),
	                 0);
	assert_int_equal(db_changes(w.ss->db), 1);
	assert_int_equal(pthread_create(&r.thread, NULL, take_there, &r), 0);
	nap_ms(500);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	assert_int_equal(pthread_join(r.thread, NULL), 0);
	assert_int_equal(r.rc, 0);
	session_store_close(r.ss);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_reservation_of_a_child),
		cmocka_unit_test(test_dead_reservation_of_a_sibling),
		cmocka_unit_test(test_dead_reservation_of_the_damaged),
		cmocka_unit_test(test_numbers_cannot_be_guessed),
		cmocka_unit_test(test_acts_on_the_parent),
		cmocka_unit_test(test_acts_on_both),
		cmocka_unit_test(test_the_outer_decides),
		cmocka_unit_test(test_acts_of_the_owner),
		cmocka_unit_test(test_parent_accounts),
		cmocka_unit_test(test_over_does_not_grow),
		cmocka_unit_test(test_locked_copy),
		cmocka_unit_test(test_repeated_report),
		cmocka_unit_test(test_block_holds_for_all_runs),
		cmocka_unit_test(test_whose_clock),
		cmocka_unit_test(test_two_take_turns),
		cmocka_unit_test(test_time_after_the_lock),
		cmocka_unit_test(test_delivered_is_not_leased),
	};

	return ON_EACH_STORE(tests, open_world);
}
