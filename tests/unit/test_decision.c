/* test_decision.c - the consent decision, which tells its caller which step to do next. Each row
 * has the results of these steps, their expected order (L look, P plan, A ask, K keep) and the
 * expected end. */
#include "consent_world.h"

#include "base/error.h"
#include "consent/decision.h"
#include "policy/plan.h"

/* One look at the skill, and the plan that is made after that look. */
struct scene {
	enum consent_state state;
	uint8_t tree; /* each byte of the digest of the files */
	bool wanted;  /* the caller wants to ask the owner about this plan */
};

struct row {
	const char *what;
	struct scene scenes[3]; /* what each look finds */
	bool refuse;            /* the policy file refuses skills without an approval */
	bool dry;
	bool cheap;   /* the first look is quick: it does not read all files */
	bool other;   /* the plan that is made after an answer has another manifest */
	bool foreign; /* the plan was made from another manifest than the approved one */
	enum consent_answer answers[3];
	const char *steps;
	int rc;
	const char *error;
};

#define NONE                                                                                       \
	{                                                                                          \
		.state = CONSENT_NONE                                                              \
	}
#define WANTED                                                                                     \
	{                                                                                          \
		.state = CONSENT_NONE, .wanted = true                                              \
	}
#define HOLDS                                                                                      \
	{                                                                                          \
		.state = CONSENT_HOLDS                                                             \
	}
#define LACKS                                                                                      \
	{                                                                                          \
		.state = CONSENT_HOLDS, .wanted = true                                             \
	}
#define CHANGED                                                                                    \
	{                                                                                          \
		.state = CONSENT_CHANGED                                                           \
	}
#define OVER                                                                                       \
	{                                                                                          \
		.state = CONSENT_OVER                                                              \
	}

static const struct row ROWS[] = {
	{ "nothing to ask", { NONE }, .steps = "LP" },
	{ "an approval holds", { HOLDS }, .steps = "LP" },
	{ "once", { WANTED }, .answers = { ANSWER_ONCE }, .steps = "LPAP" },
	{ "once, read first",
	  { WANTED, WANTED },
	  .cheap = true,
	  .answers = { ANSWER_ONCE },
	  .steps = "LPLPAP" },
	{ "no answer possible, and the policy lets it run",
	  { WANTED },
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPA" },
	{ "no answer possible, and the policy refuses",
	  { NONE },
	  .refuse = true,
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPA",
	  .rc = -1,
	  .error = "policy file refuses" },
	{ "no",
	  { WANTED },
	  .answers = { ANSWER_NO },
	  .steps = "LPA",
	  .rc = -1,
	  .error = "was not approved" },
	{ "always", { WANTED, HOLDS }, .answers = { ANSWER_ALWAYS }, .steps = "LPAKLP" },
	{ "always, and the plan still lacks something",
	  { WANTED, LACKS },
	  .answers = { ANSWER_ALWAYS, ANSWER_ONCE },
	  .steps = "LPAKLPAP" },
	{ "always, and it changed meanwhile",
	  { WANTED, CHANGED },
	  .answers = { ANSWER_ALWAYS },
	  .steps = "LPAKLP",
	  .rc = -1,
	  .error = "changed since it was approved" },
	{ "always, and it was revoked",
	  { WANTED, WANTED },
	  .answers = { ANSWER_ALWAYS },
	  .refuse = true,
	  .steps = "LPAKLP",
	  .rc = -1,
	  .error = "is not approved" },
	{ "always, and the owner took it back at once",
	  { CHANGED, NONE },
	  .answers = { ANSWER_ALWAYS },
	  .steps = "LPAKLP",
	  .rc = -1,
	  .error = "is not approved" },
	{ "changed, agreed to", { CHANGED }, .answers = { ANSWER_ONCE }, .steps = "LPAP" },
	{ "changed, no answer possible",
	  { CHANGED },
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPA",
	  .rc = -1,
	  .error = "changed since it was approved" },
	{ "over, no answer possible",
	  { OVER },
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPA",
	  .rc = -1,
	  .error = "has expired" },
	{ "over, no",
	  { OVER },
	  .answers = { ANSWER_NO },
	  .steps = "LPA",
	  .rc = -1,
	  .error = "was not approved" },
	{ "the manifest changed after the answer",
	  { WANTED },
	  .other = true,
	  .answers = { ANSWER_ONCE },
	  .steps = "LPAP",
	  .rc = -1,
	  .error = "changed while you looked" },
	{ "the approval is of another manifest",
	  { HOLDS },
	  .foreign = true,
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPPA",
	  .rc = -1,
	  .error = "changed since it was approved" },
	{ "dry: changed",
	  { CHANGED },
	  .dry = true,
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPA" },
	{ "dry: another manifest",
	  { HOLDS },
	  .dry = true,
	  .foreign = true,
	  .answers = { ANSWER_IMPOSSIBLE },
	  .steps = "LPPA" },
};

struct play {
	const struct row *row;
	struct consent_decision d;
	struct ssb_plan plan;
	struct plan_approval approval;
	char tree[DIGEST_TEXT];
	char steps[16];
	size_t n_looks;
	size_t n_asks;
	bool waits; /* each step first returns CONSENT_WAITS */
	bool waited;
};

/* Returns true if the step must wait this time. The decision then calls the step again. */
static bool waits_now(struct play *p)
{
	p->waited = p->waits && !p->waited;
	return p->waited;
}

static void note_step(struct play *p, char step)
{
	size_t n = strlen(p->steps);

	assert_true(n + 1 < sizeof(p->steps));
	p->steps[n] = step;
}

static int play_look(void *arg, struct ssb_error *err)
{
	struct play *p = arg;
	const struct scene *s = &p->row->scenes[p->n_looks];
	struct consent_found f = { .state = s->state };

	if (waits_now(p)) {
		return CONSENT_WAITS;
	}
	note_step(p, 'L');
	memset(f.now.tree, s->tree, sizeof(f.now.tree));
	memset(f.lock.files.tree, s->tree, sizeof(f.lock.files.tree));
	if (s->state != CONSENT_NONE) {
		f.lock.format = SKILL_SIDECAR;
		f.lock.skill = strdup("/s");
		f.lock.by = strdup("a test");
		f.lock.at = strdup("then");
		f.lock.uses = -1;
		f.lock.manifest[0] = p->row->foreign;
	}
	consent_looked(&p->d, &f, p->n_looks > 0 || !p->row->cheap, false);
	p->n_looks++;
	return 0;
}

static int play_plan(void *arg, struct ssb_error *err)
{
	struct play *p = arg;
	const struct scene *s = &p->row->scenes[p->n_looks - 1];
	const struct plan_consent c = consent_input_plan(&p->d.input);

	if (waits_now(p)) {
		return CONSENT_WAITS;
	}
	note_step(p, 'P');
	snprintf(p->tree, sizeof(p->tree), "%s", c.approval.tree != NULL ? c.approval.tree : "");
	p->approval.tree = p->tree;
	p->plan = (struct ssb_plan){ .format = SKILL_SIDECAR,
		                     .consent.refuse = p->row->refuse,
		                     .approved = c.approval.by != NULL ? &p->approval : NULL };
	p->plan.manifest_digest[0] = p->row->other && p->d.answer == ANSWER_ONCE;
	consent_planned(&p->d, &p->plan, s->wanted && p->d.answer != ANSWER_ONCE);
	return 0;
}

static int play_ask(void *arg, struct ssb_error *err)
{
	struct play *p = arg;

	if (waits_now(p)) {
		return CONSENT_WAITS;
	}
	note_step(p, 'A');
	assert_true(p->d.looked_at_all);
	enum consent_answer a = p->row->answers[p->n_asks++];
	if (a == ANSWER_ONCE) {
		p->d.as_it_is = true;
		p->d.pinned = true;
		memcpy(p->d.shown.tree, p->d.found.now.tree, sizeof(p->d.shown.tree));
		snprintf(p->d.by, sizeof(p->d.by), "a test");
		assert_int_equal(consent_input_give(&p->d.input, SSB_OPT_READ, "~/a"), 0);
	}
	consent_answered(&p->d, a);
	return 0;
}

static int play_keep(void *arg, struct ssb_error *err)
{
	struct play *p = arg;

	if (waits_now(p)) {
		return CONSENT_WAITS;
	}
	note_step(p, 'K');
	consent_kept(&p->d);
	return 0;
}

static const struct consent_steps STEPS = {
	.look = play_look, .plan = play_plan, .ask = play_ask, .keep = play_keep
};

static void play_row(const struct row *row, bool waits)
{
	struct play p = { .row = row, .waits = waits };
	struct ssb_error err = { 0 };
	int rc;

	p.d = (struct consent_decision){ .owner = &owner, .dir = "/s", .dry = row->dry };
	do {
		rc = consent_decide(&p.d, &STEPS, &p, &err);
	} while (rc == CONSENT_WAITS);
	if (rc != row->rc || strcmp(p.steps, row->steps) != 0 ||
	    (rc != 0 && strstr(err.text, row->error) == NULL)) {
		fail_msg("%s: %d, %s, '%s'", row->what, rc, p.steps, err.text);
	}
	assert_int_equal(p.d.next, rc == 0 ? CONSENT_RUN : CONSENT_STOP);
	consent_decision_done(&p.d);
}

static void decides(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		play_row(&ROWS[i], false);
		play_row(&ROWS[i], true);
	}
}

/* If the files have changed at the next look, an answer about the old files is forgotten. */
static void forgets_an_answer_about_other_files(void **state)
{
	static const struct row row = { .scenes = { WANTED,
		                                    { .state = CONSENT_NONE, .tree = 1 } } };
	struct play p = { .row = &row };
	struct ssb_error err = { 0 };

	p.d = (struct consent_decision){ .owner = &owner, .dir = "/s" };
	assert_int_equal(play_look(&p, &err), 0);
	assert_int_equal(play_plan(&p, &err), 0);
	p.d.as_it_is = p.d.pinned = true;
	p.d.answer = ANSWER_ONCE;
	assert_int_equal(consent_input_give(&p.d.input, SSB_OPT_READ, "~/a"), 0);
	p.d.next = CONSENT_LOOK;
	assert_int_equal(play_look(&p, &err), 0);
	assert_false(p.d.as_it_is || p.d.pinned);
	assert_int_equal(p.d.answer, ANSWER_NONE);
	assert_int_equal(consent_input_plan(&p.d.input).n_given[1], 0);
	consent_decision_done(&p.d);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(decides),
		T(forgets_an_answer_about_other_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
