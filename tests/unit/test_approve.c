/* What was approved for a session: whose it is, how long, and how much of it. The
 * protocol is played: a call is its principal, and perhaps an answer. */
#include "serve_world.h"

#include "base/json_read.h"
#include "base/limits.h"
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
	(void)params;
	assert_string_equal(method, "elicitation/create");
}

void __wrap_mcp_wait(struct mcp_call *c, const char *state)
{
	(void)c;
	assert_non_null(state);
}

/* ---- asking ---------------------------------------------------------------------- */

static struct skill the_skill = { (char[]){ "s" }, (char[]){ "/skills/s" } };

/* A plan that lacks the right to read `path`. */
static enum approval ask(const struct world *w, struct mcp_call *c, char *path)
{
	AUTO(approved_for_done) struct approved_for given = { 0 };
	struct consent_found found = { 0 };
	struct refusal r = { .kind = REFUSAL_READ,
		             .what = (char[]){ "read" },
		             .where = (char[]){ "x" },
		             .why = (char[]){ "why" },
		             .remedy = (char[]){ "remedy" },
		             .option = SSB_OPT_READ,
		             .value = path };
	const struct ssb_plan plan = { .refusals = &r, .n_refusals = 1 };

	return approval_ask(w->serve.approvals, c, &the_skill, &plan, &found, &given);
}

/* The owner says "session" to it. */
static void approve(const struct world *w, const char *principal, char *path)
{
	static const char answer[] =
	        "{\"action\":\"accept\",\"content\":{\"decision\":\"session\"}}";
	struct extra_grant one = { SSB_OPT_READ, path };
	const struct approved_for asked = { .v = &one, .n = 1 };
	const struct approved_for none = { .rounds = 1 };
	const struct ssb_plan plan = { 0 };
	const char *why = NULL;
	auto_buf state;

	buf_init(&state, 4096);
	approve_state(&state, &plan, &none, &asked);
	struct mcp_call c = { .principal = principal, .state = state.data };
	assert_int_equal(json_read(&c.answer, answer, strlen(answer), &why), 0);
	assert_int_equal(ask(w, &c, path), APPROVAL_GIVEN);
	json_doc_done(&c.answer);
}

static enum approval ask_plain(const struct world *w, const char *principal, char *path)
{
	struct mcp_call c = { .principal = principal };

	return ask(w, &c, path);
}

static int setup(void **state)
{
	struct ssb_error err = { 0 };

	world_setup(state);
	struct world *w = *state;
	return approvals_new(&w->serve, &w->serve.approvals, &err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	approvals_free(w->serve.approvals);
	return world_teardown(state);
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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(goes_with_its_client),
		T(has_a_cap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
