/* test_approve.c - approvals that are valid for one session of the server: which client has them,
 * how long they are valid, and how many there may be. The test replaces the protocol: a call has
 * only a principal, and perhaps an answer. */
#include "serve_world.h"

#include "base/json_read.h"
#include "base/limits.h"
#include "base/string_list.h"
#include "policy/plan.h"
#include "serve/approve.h"
#include "serve/approve_priv.h"

struct mcp_call {
	const char *principal;
	const char *state; /* NULL: the client has not answered */
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

static char *the_question;      /* the last question that was asked */
static const char *the_refusal; /* the next refusal must contain this text */

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

void __wrap_mcp_wait(struct mcp_call *c, const char *state)
{
	(void)c;
	assert_non_null(state);
}

/* ---- asking ---------------------------------------------------------------------- */

static struct skill the_skill = { (char[]){ "s" }, (char[]){ "/skills/s" } };

static uint8_t the_tree;     /* each byte of the digest of the skill's files */
static uint8_t the_manifest; /* each byte of the digest of its manifest */
static enum ssb_option the_option = SSB_OPT_READ;
static enum consent_state the_state; /* the state of the skill's approval */
static bool is_unknown;              /* the skill's files could not be read */
static struct ssb_plan the_plan;

static struct ssb_plan *plan_of(struct refusal *r, size_t n)
{
	the_plan = (struct ssb_plan){ .refusals = r, .n_refusals = n };
	memset(the_plan.manifest_digest, the_manifest, sizeof(the_plan.manifest_digest));
	return &the_plan;
}

static struct approve_case case_of(struct mcp_call *c, const struct ssb_plan *plan)
{
	struct approve_case k = { .serve = (struct serve *)(uintptr_t)&w->serve,
		                  .call = c,
		                  .skill = the_skill,
		                  .files = { .known = !is_unknown },
		                  .decision = { .plan = plan,
		                                .looked_at_all = true,
		                                .next = CONSENT_ASK,
		                                .found.state = the_state } };

	memset(k.decision.found.now.tree, the_tree, sizeof(k.decision.found.now.tree));
	return k;
}

static void case_done(struct approve_case *k)
{
	k->skill = (struct skill){ 0 }; /* its strings belong to the_skill */
	approve_done(k);
}

static enum consent_answer ask_case(struct approve_case *k)
{
	enum consent_answer a = approve_ask(w->serve.approvals, k);

	assert_int_equal(k->why[0] != '\0', a == ANSWER_NO);
	assert_int_equal(k->asked, a == ANSWER_NONE);
	if (a == ANSWER_NO) {
		assert_non_null(strstr(k->why, the_refusal));
	}
	return a;
}

/* Asks the owner about a plan in which the request to read `path` was refused. */
static enum consent_answer ask_after(struct mcp_call *c, char *path, unsigned rounds)
{
	struct refusal r = { .kind = REFUSAL_READ,
		             .what = (char[]){ "read" },
		             .where = (char[]){ "x" },
		             .why = (char[]){ "why" },
		             .remedy = (char[]){ "remedy" },
		             .option = the_option,
		             .value = path };
	AUTO(case_done) struct approve_case k = case_of(c, plan_of(&r, 1));

	k.rounds = rounds;
	enum consent_answer a = ask_case(&k);
	if (a == ANSWER_ONCE) {
		assert_true(given_has(k.decision.input.given, k.decision.input.n_given, the_option,
		                      path));
		assert_true(k.decision.pinned);
		assert_memory_equal(k.decision.shown.tree, k.decision.found.now.tree,
		                    sizeof(k.decision.shown.tree));
	}
	assert_int_equal(k.keep.n, a == ANSWER_ALWAYS);
	return a;
}

static enum consent_answer ask(struct mcp_call *c, char *path)
{
	return ask_after(c, path, 0);
}

/* Writes to `state` the requestState of a question about `path`. */
static void seal(struct buf *state, char *path)
{
	struct given one = { .option = the_option, .value = path };
	const struct approve_items asked = { .v = &one, .n = 1 };
	AUTO(case_done) struct approve_case k = case_of(NULL, plan_of(NULL, 0));

	k.rounds = 1;
	buf_init(state, 4096);
	approve_state(state, &k, &asked);
}

static enum consent_answer answer(const char *principal, const char *state, char *path,
                                  const char *text)
{
	struct mcp_call c = { .principal = principal, .state = state };
	const char *why = NULL;

	assert_int_equal(json_read(&c.answer, text, strlen(text), &why), 0);
	enum consent_answer a = ask(&c, path);
	json_doc_done(&c.answer);
	return a;
}

#define SAYS(action, decision)                                                                     \
	"{\"action\":\"" action "\",\"content\":{\"decision\":\"" decision "\"}}"

/* The owner answers the question about `path` with "session". */
static void approve(const char *principal, char *path)
{
	auto_buf state;

	seal(&state, path);
	assert_int_equal(answer(principal, state.data, path, SAYS("accept", "session")),
	                 ANSWER_ONCE);
}

static enum consent_answer ask_plain(const char *principal, char *path)
{
	struct mcp_call c = { .principal = principal };

	return ask(&c, path);
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
	the_refusal = "more than fits into a question";
	world_setup(state);
	return approvals_new(&w->serve.approvals, &err);
}

static int teardown(void **state)
{
	approvals_free(w->serve.approvals);
	free(the_question);
	the_question = NULL;
	return world_teardown(state);
}

/* An answer approves only if its action is "accept" and its decision is exactly one of those
 * offered. Any other answer refuses the run, and is not remembered. */
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
	char path[] = "~/a";

	for (size_t i = 0; i < ARRAY_LEN(NO); i++) {
		auto_buf asked;
		seal(&asked, path);
		the_refusal = "the owner did not approve it";
		if (answer("one", asked.data, path, NO[i]) != ANSWER_NO) {
			fail_msg("a yes: %s", NO[i]);
		}
		assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	}
	approve("one", path); /* the control */
}

/* The answers "once" and "always" are not remembered for the session of the server. */
static void once_is_not_remembered(void **state)
{
	char path[] = "~/a";
	auto_buf asked;

	seal(&asked, path);
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "once")), ANSWER_ONCE);
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "always")), ANSWER_ALWAYS);
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
}

/* A skill whose files changed since the approval runs only if the owner agrees to the change. The
 * owner is asked even if no request of the plan was refused. */
static void asks_for_the_word(void **state)
{
	static const char *const CHOICES[] = { SAYS("accept", "once"), SAYS("accept", "session") };

	the_state = CONSENT_CHANGED;
	for (size_t i = 0; i < ARRAY_LEN(CHOICES); i++) {
		const struct approve_items asked = { .as_it_is = true };
		struct mcp_call c = { .principal = "one" };
		AUTO(case_done) struct approve_case k = case_of(&c, plan_of(NULL, 0));
		const char *why = NULL;
		auto_buf sealed = BUF(4096);

		assert_int_equal(ask_case(&k), ANSWER_NONE);
		assert_non_null(strstr(the_question, "changed since you approved it"));
		approve_state(&sealed, &k, &asked);
		c.state = sealed.data;
		assert_int_equal(json_read(&c.answer, CHOICES[i], strlen(CHOICES[i]), &why), 0);
		AUTO(case_done) struct approve_case again = case_of(&c, plan_of(NULL, 0));
		assert_int_equal(ask_case(&again), ANSWER_ONCE);
		assert_true(again.decision.as_it_is && again.decision.pinned);
		json_doc_done(&c.answer);
	}
	/* The answer "session" is remembered for this session and for these files only. */
	struct mcp_call c = { .principal = "one" };
	AUTO(case_done) struct approve_case later = case_of(&c, plan_of(NULL, 0));
	assert_int_equal(ask_case(&later), ANSWER_ONCE);
	assert_true(later.decision.as_it_is);
	the_tree = 1;
	AUTO(case_done) struct approve_case other = case_of(&c, plan_of(NULL, 0));
	assert_int_equal(ask_case(&other), ANSWER_NONE);
}

/* An answer does not count if the manifest, the files or the state of the approval have changed
 * since the question. The owner is asked again. */
static void answers_what_was_asked(void **state)
{
	char path[] = "~/a";
	auto_buf asked;

	seal(&asked, path);
	the_manifest = 1;
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "session")), ANSWER_NONE);
	the_manifest = 0;
	the_tree = 1;
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "session")), ANSWER_NONE);
	the_tree = 0;
	the_state = CONSENT_OVER;
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "session")), ANSWER_NONE);
	the_state = CONSENT_NONE;
	assert_int_equal(answer("one", asked.data, path, SAYS("accept", "session")), ANSWER_ONCE);
}

static void goes_with_its_client(void **state)
{
	char path[] = "~/a";
	char other[] = "~/b";

	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	approve("one", path);
	approve("two", path);
	assert_int_equal(ask_plain("one", path), ANSWER_ONCE);
	assert_int_equal(ask_plain("one", other), ANSWER_NONE);
	assert_int_equal(ask_plain("three", path), ANSWER_NONE);
	approvals_forget(w->serve.approvals, "three");
	approvals_forget(w->serve.approvals, "one");
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	assert_int_equal(ask_plain("two", path), ANSWER_ONCE);
}

/* An approval is for the files that were shown. For other files the owner is asked again. */
static void holds_for_the_files(void **state)
{
	char path[] = "~/a";

	the_tree = 1;
	approve("one", path);
	assert_int_equal(ask_plain("one", path), ANSWER_ONCE);
	the_tree = 2;
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	the_tree = 1;
	assert_int_equal(ask_plain("one", path), ANSWER_ONCE);
	the_tree = 0;
}

/* An approval is not valid for another manifest of the skill, for another skill or for another
 * right. */
static void holds_for_nothing_else(void **state)
{
	char path[] = "~/a";
	char *dir = the_skill.dir;

	approve("one", path);
	the_manifest = 1;
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	the_manifest = 0;
	the_skill.dir = (char[]){ "/skills/t" };
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	the_skill.dir = dir;
	the_option = SSB_OPT_WRITE;
	assert_int_equal(ask_plain("one", path), ANSWER_NONE);
	the_option = SSB_OPT_READ;
	assert_int_equal(ask_plain("one", path), ANSWER_ONCE);
}

/* When as many approvals as allowed are remembered, a new one replaces the oldest: the owner is
 * asked again for the skill of the oldest. */
static void has_a_cap(void **state)
{
	char path[32];
	char first[] = "~/0";
	char second[] = "~/1";

	for (int i = 0; i < MAX_APPROVED; i++) {
		snprintf(path, sizeof(path), "~/%d", i);
		approve("one", path);
	}
	assert_int_equal(ask_plain("one", first), ANSWER_ONCE);
	snprintf(path, sizeof(path), "~/%d", MAX_APPROVED);
	approve("one", path);
	assert_int_equal(ask_plain("one", path), ANSWER_ONCE);
	assert_int_equal(ask_plain("one", second), ANSWER_ONCE);
	assert_int_equal(ask_plain("one", first), ANSWER_NONE);
}

/* Asks about a plan in which requests for `n` files were refused. Each file's name has `len` bytes
 * more than usual. The plan also requests `n` places that were not refused. */
static enum consent_answer ask_many(size_t n, size_t len)
{
	AUTO(string_list_done) struct string_list asked = { 0 };
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
	the_plan = (struct ssb_plan){
		.refusals = v, .n_refusals = n, .requested = asked, .consent = { .refuse = true }
	};
	AUTO(case_done) struct approve_case k = case_of(&c, &the_plan);
	return ask_case(&k);
}

/* The question lists every dangerous place. It lists other places only as far as they fit on one
 * screen, and counts the rest. */
static void says_what_is_dangerous(void **state)
{
	char text[64];

	assert_int_equal(ask_many(40, 0), ANSWER_NONE);
	for (int i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "  ! read what is in /etc/%d ", i);
		assert_non_null(strstr(the_question, text));
	}
	assert_non_null(strstr(the_question, "The worst of it:"));
	assert_non_null(strstr(the_question, "more places, none of them in your home"));
}

/* A question lists at most MAX_APPROVE_ITEMS items, and says how many are left. */
static void asks_for_some_at_a_time(void **state)
{
	char text[32];

	snprintf(text, sizeof(text), "\\n%d. why", MAX_APPROVE_ITEMS);
	assert_int_equal(ask_many(MAX_APPROVE_ITEMS, 0), ANSWER_NONE);
	assert_non_null(strstr(the_question, text));
	assert_null(strstr(the_question, "It asks for "));
	assert_int_equal(ask_many(MAX_APPROVE_ITEMS + 1, 0), ANSWER_NONE);
	assert_non_null(strstr(the_question, text));
	assert_non_null(strstr(the_question, "The skill asks for 1 more item; the next"));
}

/* A skill that requests more after each answer is refused after MAX_APPROVE_ROUNDS questions. */
static void asks_so_often(void **state)
{
	struct mcp_call c = { .principal = "one" };
	char path[] = "~/a";

	for (unsigned past = 0; past < 2; past++) {
		the_refusal = "asks for more after each of";
		assert_int_equal(ask_after(&c, path, MAX_APPROVE_ROUNDS - 1 + past),
		                 past ? ANSWER_NO : ANSWER_NONE);
	}
}

/* The owner is not asked if no answer would help, or if the files of the skill are unknown. */
static void asks_for_what_can_be_given(void **state)
{
	char path[] = "~/a";

	the_refusal = "something that no approval can give";
	assert_int_equal(ask_plain("one", NULL), ANSWER_NO);
	the_option = SSB_OPT_MEMORY;
	assert_int_equal(ask_plain("one", path), ANSWER_NO);
	the_option = SSB_OPT_READ;
	is_unknown = true;
	the_refusal = "out of memory"; /* the text if there is no other reason */
	assert_int_equal(ask_plain("one", path), ANSWER_NO);
	assert_null(the_question);
}

/* A question that is too long is not asked: it would have to be cut, and the owner would agree to
 * text that was not shown. */
static void does_not_ask_by_halves(void **state)
{
	assert_int_equal(ask_many(400, 150), ANSWER_NO);
	assert_null(the_question);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(goes_with_its_client),       T(has_a_cap),
		T(holds_for_the_files),        T(says_what_is_dangerous),
		T(does_not_ask_by_halves),     T(holds_for_nothing_else),
		T(only_a_yes_is_one),          T(once_is_not_remembered),
		T(answers_what_was_asked),     T(asks_for_the_word),
		T(asks_for_some_at_a_time),    T(asks_so_often),
		T(asks_for_what_can_be_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
