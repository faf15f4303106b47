/* test_keeper.c - the keeper's loop, and its clerk (the thread that asks the store). The test sets
 * the answers of the store. */
#include <string.h>

#include "unit.h"
#include "base/error.h"
#include "session/act.h"
#include "session/keeper_loop.c"

/* ---- the store ----------------------------------------------------------- */

static struct session_policy policy = { .on_store_loss = ACT_KILL };
static struct session above;
static bool parent_lost;

static struct session session_of(const char *id, const char *parent)
{
	struct session s = { .policy = &policy, .created_us = 1000 };

	for (size_t i = 0; i < SESSION_METERS; i++) {
		policy.limits[i].max = SESSION_NO_LIMIT;
	}
	snprintf(s.id, sizeof(s.id), "%s", id);
	snprintf(s.parent, sizeof(s.parent), "%s", parent);
	return s;
}

int session_run_used(struct session_store *ss, const struct session_run *run,
                     const struct session_usage *used, struct decision *ret, struct ssb_error *err)
{
	(void)ss, (void)run, (void)used, (void)err;
	*ret = (struct decision){ .after = session_of("child", "top"),
		                  .verdict = { .allowed = true } };
	return 0;
}

int session_get(struct session_store *ss, const char *id, struct session *ret,
                struct ssb_error *err)
{
	(void)ss;
	if (strcmp(id, "top") == 0 && parent_lost) {
		return ssb_fail(err, SSB_E_SYS, 0, "store", "lost in between");
	}
	*ret = strcmp(id, "top") == 0 ? above : session_of("child", "top");
	return 0;
}

int session_run_placed(struct session_store *ss, const struct session_run *run,
                       struct ssb_error *err)
{
	(void)ss, (void)run, (void)err;
	return 0;
}

int session_run_end(struct session_store *ss, const struct session_run *run, int exit_status,
                    const char *ending, struct ssb_error *err)
{
	(void)ss, (void)run, (void)exit_status, (void)ending, (void)err;
	return 0;
}

int session_news_fd(const struct session_store *ss)
{
	(void)ss;
	return -1;
}

int session_news(struct session_store *ss, char ret_id[SESSION_ID], struct ssb_error *err)
{
	(void)ss, (void)ret_id, (void)err;
	return 0;
}

int session_store_open(const struct owner *o, struct session_store **ret, struct ssb_error *err)
{
	(void)o, (void)ret;
	return ssb_fail(err, SSB_E_SYS, 0, "store", "none");
}

void session_store_close(struct session_store *ss)
{
	(void)ss;
}

bool session_deferred(struct session_store *ss, struct decision *ret)
{
	(void)ss, (void)ret;
	return false;
}

void session_act(struct session_store *ss, const struct owner *o, struct decision *d,
                 const struct session_run *except)
{
	(void)ss, (void)o, (void)d, (void)except;
}

int session_close_lost(struct session_store *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err)
{
	(void)ss, (void)o, (void)id, (void)except, (void)err;
	*ret_closed = 0;
	return 0;
}

/* ---- a keeper that has no run -------------------------------------------- */

static void keeper_of(struct keeper *k)
{
	*k = (struct keeper){ .sup = -1, .sup_pid = -1, .dir = -1, .listen = -1, .init = -1 };
	keeper_clients_init(k);
	k->word = (struct clerk_word){
		.stored = true, .looked = true, .deadline_us = INT64_MAX, .on_loss = ACT_KILL
	};
	k->task.kind = CLERK_LOOK;
	k->given_at = clock_ms();
}

static struct clerk_word ask_clerk(struct clerk *c, enum clerk_task_kind kind)
{
	struct clerk_task task = { .kind = kind, .run = { .session = "child" } };
	struct clerk_word w;

	clerk_give(c, &task);
	do {
		struct pollfd p = { clerk_fd(c), POLLIN, 0 };
		assert_int_equal(poll(&p, 1, 10000), 1);
	} while (!clerk_take(c, &w));
	return w;
}

/* ---- tests --------------------------------------------------------------- */

static void test_half_an_answer(void **state)
{
	const struct session_run run = { .session = "child" };
	struct clerk *c = NULL;

	above = session_of("top", "");
	assert_int_equal(clerk_new(NULL, NULL, &run, &c, NULL), 0);
	struct clerk_word w = ask_clerk(c, CLERK_USED);
	assert_true(w.stored && w.looked);
	assert_string_equal(w.chain[0], "child");
	assert_string_equal(w.chain[1], "top");
	assert_string_equal(w.chain[2], "");
	assert_int_equal(w.on_loss, ACT_KILL);
	parent_lost = true;
	w = ask_clerk(c, CLERK_USED);
	assert_true(w.stored); /* so the keeper does not report its usage again */
	assert_false(w.looked);
	w = ask_clerk(c, CLERK_LOOK);
	assert_false(w.stored);
	parent_lost = false;
	assert_true(ask_clerk(c, CLERK_LOOK).looked);
	/* The clerk is not freed: it ends with the process. */
}

/* If the clerk has stored the report of the keeper, but could not read the sessions, that counts as
 * a loss of the store. The deadline and the action for a loss stay as they were. */
static void test_half_an_answer_is_a_loss(void **state)
{
	const struct clerk_word half = { .stored = true };
	struct keeper k;

	keeper_of(&k);
	k.word.deadline_us = 4711;
	hear_store(&k, &half);
	assert_int_equal(k.word.on_loss, ACT_KILL);
	assert_int_equal(k.word.deadline_us, 4711);
	assert_int_equal(k.lost_at, k.given_at);
	lose_store(&k, k.given_at + LOSS_MS - 1);
	assert_false(k.killing);
	hear_store(&k, &half);
	lose_store(&k, k.given_at + LOSS_MS);
	assert_true(k.killing);
}

static void test_half_an_answer_resumes_nothing(void **state)
{
	struct clerk_word w = { .stored = true };
	struct keeper k;

	keeper_of(&k);
	k.paused = true;
	k.given_at += 1;
	hear_store(&k, &w);
	assert_true(k.paused);
	w = (struct clerk_word){ .stored = true, .looked = true, .deadline_us = INT64_MAX };
	hear_store(&k, &w);
	assert_false(k.paused);
}

static void test_it_sleeps_when_all_is_said(void **state)
{
	struct keeper k;

	keeper_of(&k);
	k.over = k.dead = k.end_stored = true;
	assert_in_range(wait_ms(&k), 500, STORE_MS);
	k.end_stored = false;
	assert_int_equal(wait_ms(&k), 0);
}

/* What is left of a grace period is computed from the time of the kill in the store, not from the
 * time of the answer. */
static void test_grace_that_is_left(void **state)
{
	static const struct {
		int64_t ago_ms, grace_ms, left_ms;
	} T[] = {
		{ 0, 5000, 5000 },      { 3000, 5000, 2000 }, { 9000, 5000, 0 },
		{ -60000, 5000, 5000 }, { 0, 0, 0 },          { 0, 1LL << 50, HOUR_MS },
	};
	struct clerk_word w;

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct session s = session_of("top", "");
		int64_t begun = clock_wall_us();
		s.state = SESSION_KILLED;
		s.ended_us = begun - T[i].ago_ms * 1000;
		s.until_us = s.ended_us + T[i].grace_ms * 1000;
		assert_int_equal(clerk_look(NULL, "top", &s, &w, NULL), 0);
		int64_t took_ms =
		        /* minus the time that the test has used */
		        (clock_wall_us() - begun) / 1000 + 1;
		assert_int_equal(w.wish, WISH_KILL);
		assert_in_range(w.grace_ms, T[i].left_ms > took_ms ? T[i].left_ms - took_ms : 0,
		                T[i].left_ms);
	}
}

/* The room is how much a run may still use before the keeper must ask the store again. If a limit
 * that refuses is reached, the room is 0. If a limit that only pauses, alerts or logs is reached,
 * it has already had its effect, and does not make the room smaller. */
static void test_room_of_a_limit(void **state)
{
	static const struct {
		uint64_t used;
		enum session_act act;
		uint64_t room;
	} T[] = {
		{ 0, ACT_KILL, 10 },
		{ 10, ACT_KILL, 0 },
		{ 11, ACT_KILL, 0 },
		{ 11, ACT_BLOCK, 0 },
		{ 11, ACT_PAUSE, SESSION_NO_LIMIT },
		{ 11, ACT_ALERT, SESSION_NO_LIMIT },
		{ 11, ACT_LOG, SESSION_NO_LIMIT },
	};
	struct clerk_word w;

	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct session s = session_of("top", "");
		policy.limits[METER_BYTES_OUT] =
		        (struct session_limit){ .max = 10, .act = T[i].act };
		s.meters[METER_BYTES_OUT] = T[i].used;
		assert_int_equal(clerk_look(NULL, "top", &s, &w, NULL), 0);
		assert_int_equal(w.room[METER_BYTES_OUT], T[i].room);
		assert_int_equal(w.room[METER_BYTES_IN], SESSION_NO_LIMIT);
	}
}

/* What the clerk wants for the runs of a session (`wish`), for each state of the session. */
static void test_wish_of_a_state(void **state)
{
	for (int st = 0; st < SESSION_STATES; st++) {
		struct session s = session_of("top", "");
		struct clerk_word w;
		s.state = (enum session_state)st;
		assert_int_equal(clerk_look(NULL, "top", &s, &w, NULL), 0);
		assert_int_equal(w.wish, session_is_over(s.state) ? WISH_KILL
		                         : st == SESSION_PAUSED   ? WISH_PAUSE
		                                                  : WISH_GO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_an_answer),
		cmocka_unit_test(test_half_an_answer_is_a_loss),
		cmocka_unit_test(test_half_an_answer_resumes_nothing),
		cmocka_unit_test(test_it_sleeps_when_all_is_said),
		cmocka_unit_test(test_grace_that_is_left),
		cmocka_unit_test(test_room_of_a_limit),
		cmocka_unit_test(test_wish_of_a_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
