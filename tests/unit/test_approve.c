/* What was approved for a session: whose it is, how long, and how much of it. The
 * protocol is played: a call is its principal, and perhaps an answer. */
#include "serve_world.h"

#include "base/json_read.h"
#include "base/limits.h"
#include "base/string_list.h"
#include "policy/plan.h"
#include "serve/approve.h"
#include "serve/approve_priv.h"

struct mcp_call {
	const char *principal;
	const char *state; /* NULL: it brings no answer */
	struct json_doc answer;
};

const char *__wrap_mcp_principal(const struct mcp_call *c);
const char *__wrap_mcp_state(const struct mcp_call *c);
const struct json_doc *__wrap_mcp_doc(const struct mcp_call *c);
enum mcp_answer __wrap_mcp_answer(const struct mcp_call *c, const char *key,
                                  const struct json_node **ret_answer);
bool __wrap_mcp_can(const struct mcp_call *c, enum mcp_ability what);
void __wrap_mcp_ask(struct mcp_call *c, const char *key, const char *method, const char *params);
void __wrap_mcp_wait(struct mcp_call *c, const char *state);
void __wrap_mcp_tool_done(struct mcp_call *c, const char *text, const char *structured,
                          bool is_error);

static char *the_question;      /* the last that was put */
static const char *the_refusal; /* a word of the one that is awaited */

const char *__wrap_mcp_principal(const struct mcp_call *c)
{
	return c->principal;
}

const char *__wrap_mcp_state(const struct mcp_call *c)
{
	return c->state;
}

const struct json_doc *__wrap_mcp_doc(const struct mcp_call *c)
{
	return &c->answer;
}

enum mcp_answer __wrap_mcp_answer(const struct mcp_call *c, const char *key,
                                  const struct json_node **ret_answer)
{
	(void)key;
	*ret_answer = json_top(&c->answer);
	return MCP_ANSWERED;
}

bool __wrap_mcp_can(const struct mcp_call *c, enum mcp_ability what)
{
	(void)c;
	return what == MCP_CAN_ELICIT;
}

void __wrap_mcp_ask(struct mcp_call *c, const char *key, const char *method, const char *params)
{
	(void)c;
	(void)key;
	assert_string_equal(method, "elicitation/create");
	free(the_question);
	the_question = strdup(params);
}

void __wrap_mcp_tool_done(struct mcp_call *c, const char *text, const char *structured,
                          bool is_error)
{
	(void)c;
	(void)text;
	assert_true(is_error);
	assert_non_null(strstr(structured, the_refusal));
}

void __wrap_mcp_wait(struct mcp_call *c, const char *state)
{
	(void)c;
	assert_non_null(state);
}

/* ---- asking ---------------------------------------------------------------------- */

static struct skill the_skill = { (char[]){ "s" }, (char[]){ "/skills/s" } };

static uint8_t the_tree;     /* each byte of the digest of its files */
static uint8_t the_manifest; /* and of that of its manifest */
static enum ssb_option the_option = SSB_OPT_READ;
static enum consent the_state; /* of its approval */
static bool is_unknown;        /* nobody could look at its files */

static struct ssb_plan plan_of(struct refusal *r, size_t n)
{
	struct ssb_plan plan = { .refusals = r, .n_refusals = n };

	memset(plan.manifest_digest, the_manifest, sizeof(plan.manifest_digest));
	return plan;
}

static struct looked seen(void)
{
	struct looked l = { .known = !is_unknown, .found.state = the_state };

	memset(l.found.now.tree, the_tree, sizeof(l.found.now.tree));
	(void)digest_text(l.found.now.tree, l.tree);
	return l;
}

/* A plan that lacks the right to read `path`. */
static enum approval ask_after(const struct world *w, struct mcp_call *c, char *path,
                               struct approved_for *given)
{
	const struct looked looked = seen();
	struct refusal r = { .kind = REFUSAL_READ,
		             .what = (char[]){ "read" },
		             .where = (char[]){ "x" },
		             .why = (char[]){ "why" },
		             .remedy = (char[]){ "remedy" },
		             .option = the_option,
		             .value = path };
	const struct ssb_plan plan = plan_of(&r, 1);

	return approval_ask(w->serve.approvals, c, &the_skill, &plan, &looked, given);
}

static enum approval ask(const struct world *w, struct mcp_call *c, char *path)
{
	AUTO(approved_for_done) struct approved_for given = { 0 };

	return ask_after(w, c, path, &given);
}

/* What a question about it was sealed with. */
static void seal(struct buf *state, char *path)
{
	struct given one = { the_option, path };
	const struct approved_for asked = { .v = &one, .n = 1 };
	const struct approved_for none = { .rounds = 1 };
	const struct ssb_plan plan = plan_of(NULL, 0);
	const struct looked looked = seen();
	const struct approve_case k = { .plan = &plan, .looked = &looked };

	buf_init(state, 4096);
	approve_state(state, &k, &none, &asked);
}

static enum approval answer(const struct world *w, const char *principal, const char *state,
                            char *path, const char *text)
{
	struct mcp_call c = { .principal = principal, .state = state };
	const char *why = NULL;

	assert_int_equal(json_read(&c.answer, text, strlen(text), &why), 0);
	enum approval a = ask(w, &c, path);
	json_doc_done(&c.answer);
	return a;
}

#define SAYS(action, decision)                                                                     \
	"{\"action\":\"" action "\",\"content\":{\"decision\":\"" decision "\"}}"

/* The owner says "session" to it. */
static void approve(const struct world *w, const char *principal, char *path)
{
	auto_buf state;

	seal(&state, path);
	assert_int_equal(answer(w, principal, state.data, path, SAYS("accept", "session")),
	                 APPROVAL_GIVEN);
}

static enum approval ask_plain(const struct world *w, const char *principal, char *path)
{
	struct mcp_call c = { .principal = principal };

	return ask(w, &c, path);
}

static int setup(void **state)
{
	static char dir[] = "/skills/s";
	struct ssb_error err = { 0 };

	the_skill.dir = dir;
	the_option = SSB_OPT_READ;
	the_tree = the_manifest = 0;
	the_state = CONSENT_NONE;
	is_unknown = false;
	the_refusal = "more than a question holds";
	world_setup(state);
	struct world *w = *state;
	return approvals_new(&w->serve, &w->serve.approvals, &err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	approvals_free(w->serve.approvals);
	free(the_question);
	the_question = NULL;
	return world_teardown(state);
}

/* Whatever is not a yes in so many words is a no, and nothing is remembered of it. */
static void only_a_yes_is_one(void **state)
{
	static const char *const NO[] = {
		SAYS("decline", "session"),
		SAYS("cancel", "session"),
		SAYS("", "session"),
		SAYS("Accept", "session"),
		SAYS("accept", "deny"),
		SAYS("accept", ""),
		SAYS("accept", "Session"),
		SAYS("accept", "session "),
		"{\"action\":\"accept\"}",
		"{\"action\":\"accept\",\"decision\":\"session\"}",
		"{\"content\":{\"decision\":\"session\"}}",
		"{\"action\":\"accept\",\"content\":{\"decision\":[\"session\"]}}",
		"{}",
		"[]",
		"\"accept\"",
	};
	const struct world *w = *state;
	char path[] = "~/a";

	for (size_t i = 0; i < ARRAY_LEN(NO); i++) {
		auto_buf asked;
		seal(&asked, path);
		the_refusal = "the owner did not approve it";
		if (answer(w, "one", asked.data, path, NO[i]) != APPROVAL_DENIED) {
			fail_msg("a yes: %s", NO[i]);
		}
		assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	}
	approve(w, "one", path); /* the control */
}

/* Of one run it is a yes to this run. */
static void once_is_not_remembered(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";
	auto_buf asked;

	seal(&asked, path);
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "once")),
	                 APPROVAL_GIVEN);
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "always")),
	                 APPROVAL_KEEP);
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
}

/* What could not be kept was not approved: it does not even run this once. */
static void runs_by_nothing_unkept(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";
	static const char always[] = SAYS("accept", "always");

	for (int failed = 0; failed < 2; failed++) {
		AUTO(approved_for_done)
		struct approved_for given = { .kept = true,
			                      .kept_why = failed ? "the disk is full" : NULL };
		const char *why = NULL;
		auto_buf asked;
		seal(&asked, path);
		struct mcp_call c = { .principal = "one", .state = asked.data };
		assert_int_equal(json_read(&c.answer, always, strlen(always), &why), 0);
		the_refusal = "the disk is full";
		assert_int_equal(ask_after(w, &c, path, &given),
		                 failed ? APPROVAL_DENIED : APPROVAL_GIVEN);
		assert_int_equal(given.rounds, 1);
		json_doc_done(&c.answer);
	}
}

/* What a plan is made of, by what is known of the approval: one that holds counts as a whole;
 * of one that does not, what was taken out stays out. */
static void wishes_by_the_approval(void **state)
{
	static const struct {
		enum consent state;
		bool by_it;
		bool without;
	} EACH[] = {
		{ CONSENT_NONE, false, false },
		{ CONSENT_HOLDS, true, false },
		{ CONSENT_CHANGED, false, true },
		{ CONSENT_OVER, false, true },
	};
	struct given one = { SSB_OPT_READ, (char[]){ "~/a" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(EACH); i++) {
		for (size_t n = 0; n < 2; n++) {
			const struct approved_for given = { .v = &one, .n = n };
			struct plan_wish w = { 0 };
			the_state = EACH[i].state;
			struct looked looked = seen();
			approval_wish(&looked, &given, &w);
			assert_ptr_equal(w.consent, EACH[i].by_it ? &looked.found : NULL);
			assert_ptr_equal(w.without,
			                 EACH[i].without ? &looked.found.lock.declined : NULL);
			assert_ptr_equal(w.shown, n > 0 ? looked.tree : NULL);
			assert_true(w.extra == &one && w.n_extra == n);
		}
	}
}

/* An answer to what was asked of another manifest, of other files, or while an approval
 * held that does so no more, is none: the owner is asked again. */
static void answers_what_was_asked(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";
	auto_buf asked;

	seal(&asked, path);
	the_manifest = 1;
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "session")),
	                 APPROVAL_WAIT);
	the_manifest = 0;
	the_tree = 1;
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "session")),
	                 APPROVAL_WAIT);
	the_tree = 0;
	the_state = CONSENT_OVER;
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "session")),
	                 APPROVAL_WAIT);
	the_state = CONSENT_NONE;
	assert_int_equal(answer(w, "one", asked.data, path, SAYS("accept", "session")),
	                 APPROVAL_GIVEN);
}

static void goes_with_its_client(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";
	char other[] = "~/b";

	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	approve(w, "one", path);
	approve(w, "two", path);
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_GIVEN);
	assert_int_equal(ask_plain(w, "one", other), APPROVAL_WAIT);
	assert_int_equal(ask_plain(w, "three", path), APPROVAL_WAIT);
	approvals_forget(w->serve.approvals, "three");
	approvals_forget(w->serve.approvals, "one");
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	assert_int_equal(ask_plain(w, "two", path), APPROVAL_GIVEN);
}

/* What was agreed to is what was shown: other files are asked about anew. */
static void holds_for_the_files(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";

	the_tree = 1;
	approve(w, "one", path);
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_GIVEN);
	the_tree = 2;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	the_tree = 1;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_GIVEN);
	the_tree = 0;
}

/* Nor is it for another manifest of the same skill, another skill, or another right. */
static void holds_for_nothing_else(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";
	char *dir = the_skill.dir;

	approve(w, "one", path);
	the_manifest = 1;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	the_manifest = 0;
	the_skill.dir = (char[]){ "/skills/t" };
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	the_skill.dir = dir;
	the_option = SSB_OPT_WRITE;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_WAIT);
	the_option = SSB_OPT_READ;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_GIVEN);
}

/* Past the cap it is the oldest that is asked for again, not each new one. */
static void has_a_cap(void **state)
{
	const struct world *w = *state;
	char path[32];
	char first[] = "~/0";
	char second[] = "~/1";

	for (int i = 0; i < MAX_APPROVED; i++) {
		snprintf(path, sizeof(path), "~/%d", i);
		approve(w, "one", path);
	}
	assert_int_equal(ask_plain(w, "one", first), APPROVAL_GIVEN);
	snprintf(path, sizeof(path), "~/%d", MAX_APPROVED);
	approve(w, "one", path);
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_GIVEN);
	assert_int_equal(ask_plain(w, "one", second), APPROVAL_GIVEN);
	assert_int_equal(ask_plain(w, "one", first), APPROVAL_WAIT);
}

/* A plan that lacks `n` files with names of `len` bytes, and asks for as many others. */
static enum approval ask_many(const struct world *w, size_t n, size_t len)
{
	AUTO(approved_for_done) struct approved_for given = { 0 };
	AUTO(string_list_done) struct string_list asked = { 0 };
	const struct looked looked = seen();
	struct mcp_call c = { .principal = "one" };
	auto_free struct refusal *v = calloc(n, sizeof(*v));
	auto_free char *item = calloc(1, len + 64);
	char place[] = "x";
	char why[] = "why";
	char remedy[] = "remedy";

	assert_true(v != NULL && item != NULL);
	for (size_t i = 0; i < n; i++) {
		int at = snprintf(item, 64, "read /etc/%zu", i);
		memset(item + at, 'x', len);
		item[(size_t)at + len] = '\0';
		assert_int_equal(string_list_add(&asked, item, SIZE_MAX), 0);
	}
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct refusal){ .kind = REFUSAL_READ,
			                 .what = asked.v[i],
			                 .where = place,
			                 .why = why,
			                 .remedy = remedy,
			                 .option = SSB_OPT_READ,
			                 .value = asked.v[i] + strlen("read ") };
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(item, 64, "read /opt/h%zu", i);
		assert_int_equal(string_list_add(&asked, item, SIZE_MAX), 0);
	}
	const struct ssb_plan plan = {
		.refusals = v, .n_refusals = n, .requested = asked, .consent = { .refuse = true }
	};
	return approval_ask(w->serve.approvals, &c, &the_skill, &plan, &looked, &given);
}

/* Of what is dangerous nothing is cut; of the rest, what goes past a screen is counted. */
static void says_what_is_dangerous(void **state)
{
	const struct world *w = *state;
	char text[64];

	assert_int_equal(ask_many(w, 40, 0), APPROVAL_WAIT);
	for (int i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "  ! read what is in /etc/%d ", i);
		assert_non_null(strstr(the_question, text));
	}
	assert_non_null(strstr(the_question, "The worst of it:"));
	assert_non_null(strstr(the_question, "more places, none of them in your home"));
}

/* As many as one reads; how many are left is said. */
static void asks_for_some_at_a_time(void **state)
{
	const struct world *w = *state;
	char text[32];

	snprintf(text, sizeof(text), "\\n%d. why", MAX_APPROVE_ITEMS);
	assert_int_equal(ask_many(w, MAX_APPROVE_ITEMS, 0), APPROVAL_WAIT);
	assert_non_null(strstr(the_question, text));
	assert_null(strstr(the_question, "It asks for "));
	assert_int_equal(ask_many(w, MAX_APPROVE_ITEMS + 1, 0), APPROVAL_WAIT);
	assert_non_null(strstr(the_question, text));
	assert_non_null(strstr(the_question, "It asks for 1 more, about which"));
}

/* A skill that asks for other things after each answer is not asked for again and again. */
static void asks_so_often(void **state)
{
	const struct world *w = *state;
	struct mcp_call c = { .principal = "one" };
	char path[] = "~/a";

	for (unsigned past = 0; past < 2; past++) {
		struct approved_for given = { .rounds = MAX_APPROVE_ROUNDS - 1 + past,
			                      .heard = true };
		the_refusal = "asks for more and more";
		assert_int_equal(ask_after(w, &c, path, &given),
		                 past ? APPROVAL_DENIED : APPROVAL_WAIT);
	}
}

/* Where no answer would help, or nobody knows what it would be about, none is asked for. */
static void asks_for_what_can_be_given(void **state)
{
	const struct world *w = *state;
	char path[] = "~/a";

	the_refusal = "what no approval can give";
	assert_int_equal(ask_plain(w, "one", NULL), APPROVAL_DENIED);
	the_option = SSB_OPT_MEMORY;
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_DENIED);
	the_option = SSB_OPT_READ;
	is_unknown = true;
	the_refusal = "out of memory"; /* where nothing else is said */
	assert_int_equal(ask_plain(w, "one", path), APPROVAL_DENIED);
	assert_null(the_question);
}

/* What does not fit is not asked at all: nobody agrees to half of it. */
static void does_not_ask_by_halves(void **state)
{
	const struct world *w = *state;

	assert_int_equal(ask_many(w, 400, 150), APPROVAL_DENIED);
	assert_null(the_question);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(goes_with_its_client),   T(has_a_cap),
		T(holds_for_the_files),    T(says_what_is_dangerous),
		T(does_not_ask_by_halves), T(holds_for_nothing_else),
		T(only_a_yes_is_one),      T(once_is_not_remembered),
		T(answers_what_was_asked), T(runs_by_nothing_unkept),
		T(wishes_by_the_approval), T(asks_for_some_at_a_time),
		T(asks_so_often),          T(asks_for_what_can_be_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
