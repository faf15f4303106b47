/* test_plan_given.c - approvals and the caller's wishes in a plan: which requests an approval
 * grants, which stay declined, and which requests a caller drops. */
#include "plan_world.h"

#define READ_SSH "permissions: {filesystem: {read: [~/.ssh]}}\n"

struct said {
	enum ssb_option option;
	const char *value;
};

/* Returns the plan of a skill that requests `asks`, with the item `said` approved (none if its
 * value is NULL) and the item `declined` declined. */
static struct ssb_plan *with(const char *asks, struct said said, const char *declined,
                             struct narrow narrow)
{
	const struct given given = { .option = said.option,
		                     .value = (char *)(uintptr_t)said.value };
	char *out[] = { (char *)(uintptr_t)declined, NULL };
	const struct string_list list = { out, declined != NULL ? 1 : 0 };
	struct plan_request q = { .owner = &owner, .skill = at("skill"), .narrow = narrow };
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	char text[4096];

	q.consent.given[1] = &given;
	q.consent.n_given[1] = said.value != NULL ? 1 : 0;
	q.consent.declined[0] = &list;
	snprintf(text, sizeof(text), HEAD "%s", asks);
	write_file(at("skill/skillsandbox.yaml"), text, 0644);
	if (plan_decide(&q, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return p;
}

static bool has_env(const struct ssb_plan *p, const char *pair)
{
	return string_list_has(&p->env, pair);
}

static const struct said NONE = { SSB_OPT_READ, NULL };

/* Without the approval, each request is refused or withheld. With the approval, it is granted as if
 * the owner had given the flag. */
static void gives_what_is_lacked(void **state)
{
	static const struct {
		const char *asks;
		struct said said;
		const char *granted; /* the granted path beneath `top`, or the egress rule */
	} CASES[] = {
		{ READ_SSH, { SSB_OPT_READ, "~/.ssh" }, "u/.ssh" },
		{ "permissions: {filesystem: {write: [~/proj/.git/hooks]}}\n",
		  { SSB_OPT_WRITE, "~/proj/.git/hooks" },
		  "u/proj/.git/hooks" },
		{ "permissions: {network: {egress: [{domain: 192.0.2.1, ports: [443]}]}}\n",
		  { SSB_OPT_NET, "192.0.2.1:443" },
		  NULL },
		{ "permissions: {syscalls: {profile: permissive}}\n",
		  { SSB_OPT_PROFILE, "permissive" },
		  NULL },
	};

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_plan *without = with(CASES[i].asks, NONE, NULL, (struct narrow){ 0 });
		assert_int_equal(without->n_refusals, 1);
		assert_int_equal(without->refusals[0].option, CASES[i].said.option);
		assert_string_equal(without->refusals[0].value, CASES[i].said.value);
		struct ssb_plan *p = with(CASES[i].asks, CASES[i].said, NULL, (struct narrow){ 0 });
		assert_int_equal(p->n_refusals, 0);
		if (CASES[i].granted != NULL) {
			const struct grant *g = granted(p, at(CASES[i].granted));
			assert_non_null(g);
			assert_int_equal(g->origin, ORIGIN_FLAG);
		}
		assert_true((CASES[i].said.option == SSB_OPT_NET) == (p->n_egress > 0));
		assert_true((CASES[i].said.option == SSB_OPT_PROFILE) ==
		            (p->profile == PROFILE_PERMISSIVE));
		ssb_plan_free(without);
		ssb_plan_free(p);
	}
}

/* An approval grants only its own items. It does not grant an item that the policy file now denies,
 * nor one that the skill does not request. */
static void gives_nothing_else(void **state)
{
	static const struct {
		const char *policy;
		const char *asks;
		struct said said;
		size_t refusals;
	} CASES[] = {
		{ NULL, READ_SSH, { SSB_OPT_WRITE, "~/.ssh" }, 1 },
		{ NULL, READ_SSH, { SSB_OPT_READ, "~/.ss" }, 1 },
		{ "deny: {read: [~/.ssh]}\n", READ_SSH, { SSB_OPT_READ, "~/.ssh" }, 1 },
		{ NULL, NOTHING, { SSB_OPT_READ, "~/.ssh" }, 0 },
		{ NULL, NOTHING, { SSB_OPT_NET, "a.example:443" }, 0 },
		{ NULL, NOTHING, { SSB_OPT_PROFILE, "permissive" }, 0 },
		{ NULL, NOTHING, { SSB_OPT_ENV, "SECRET" }, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		policy(CASES[i].policy);
		struct ssb_plan *p = with(CASES[i].asks, CASES[i].said, NULL, (struct narrow){ 0 });
		assert_int_equal(p->n_refusals, CASES[i].refusals);
		assert_null(granted(p, at("u/.ssh")));
		assert_int_equal(p->n_egress, 0);
		assert_int_equal(p->profile, PROFILE_DEFAULT);
		assert_false(has_env(p, "SECRET=s"));
		ssb_plan_free(p);
	}
	policy(NULL);
}

static void gives_variables(void **state)
{
	static const char TOKEN[] = "permissions: {env_vars: {allow: [GITHUB_TOKEN]}}\n";
	static const char ABSENT[] = "permissions: {env_vars: {allow: [GH_TOKEN]}}\n";

	policy(NULL);
	struct ssb_plan *p = with(TOKEN, NONE, NULL, (struct narrow){ 0 });
	assert_true(p->n_withheld == 1 && !has_env(p, "GITHUB_TOKEN=t"));
	ssb_plan_free(p);
	p = with(TOKEN, (struct said){ SSB_OPT_ENV, "GITHUB_TOKEN" }, NULL, (struct narrow){ 0 });
	assert_true(p->n_withheld == 0 && has_env(p, "GITHUB_TOKEN=t"));
	assert_false(warned(p, "GITHUB_TOKEN"));
	ssb_plan_free(p);
	/* The approved variable is not set: it cannot be passed, and is listed in env_missing. */
	p = with(ABSENT, (struct said){ SSB_OPT_ENV, "GH_TOKEN" }, NULL, (struct narrow){ 0 });
	assert_true(p->n_withheld == 1 && string_list_has(&p->env_missing, "GH_TOKEN"));
	ssb_plan_free(p);
	policy("deny: {env: [GITHUB_TOKEN]}\n");
	p = with(TOKEN, (struct said){ SSB_OPT_ENV, "GITHUB_TOKEN" }, NULL, (struct narrow){ 0 });
	assert_false(has_env(p, "GITHUB_TOKEN=t"));
	ssb_plan_free(p);
	policy(NULL);
}

/* An item that is approved and declined is not granted: the owner has declined it after approving
 * it. A declined item that the skill does not request causes no warning. */
static void leaves_out_what_is_declined(void **state)
{
	policy(NULL);
	struct ssb_plan *p = with(READ_SSH, (struct said){ SSB_OPT_READ, "~/.ssh" }, "read ~/.ssh",
	                          (struct narrow){ 0 });
	assert_true(p->n_refusals == 0 && p->n_withheld == 1);
	assert_null(granted(p, at("u/.ssh")));
	ssb_plan_free(p);
	p = with(NOTHING, NONE, "read ~/.ssh", (struct narrow){ 0 });
	assert_true(p->n_withheld == 0 && p->warnings.n == 0);
	ssb_plan_free(p);
}

/* A caller can drop requests: their refusals are dropped, too. */
static void does_without(void **state)
{
	static const char ASKS[] = "permissions: {network: {egress: [{domain: a.example}, {domain: "
	                           "192.0.2.1}]}, filesystem: {read: [~/notes], write: [~/proj, "
	                           "~/new, ~/.ssh]}}\n"
	                           "resources: {max_runtime_seconds: 50}\n";

	policy(NULL);
	struct ssb_plan *all = with(ASKS, NONE, NULL, (struct narrow){ 0 });
	struct ssb_plan *offline = with(ASKS, NONE, NULL, (struct narrow){ .offline = true });
	struct ssb_plan *reads =
	        with(ASKS, NONE, NULL, (struct narrow){ .read_only = true, .max_seconds = 60 });
	assert_true(all->n_refusals == 2 && all->n_egress == 1);
	assert_true(offline->n_refusals == 1 && offline->n_egress == 0);
	assert_int_equal(granted(offline, at("u/proj"))->access, ACCESS_WRITE);
	assert_true(reads->n_refusals == 1 && reads->n_egress == 1);
	assert_int_equal(granted(reads, at("u/proj"))->access, ACCESS_READ);
	assert_null(granted(reads, at("u/new")));
	/* the caller cannot ask for more than the manifest */
	assert_int_equal(reads->res.max_runtime_seconds, 50);
	ssb_plan_free(all);
	ssb_plan_free(offline);
	ssb_plan_free(reads);
	all = with(ASKS, NONE, NULL, (struct narrow){ .max_seconds = 5 });
	assert_int_equal(all->res.max_runtime_seconds, 5);
	ssb_plan_free(all);
}

/* The plan contains a copy of the approval. */
static void tells_the_approval(void **state)
{
	char by[] = "me", when[] = "now", tree[] = "sha256:00";
	struct plan_request q = { .owner = &owner, .skill = at("skill"), .served = true };
	struct ssb_options *o =
	        options(FLAGS({ SSB_OPT_TRACE_OUTPUT, "/record" }, { SSB_OPT_TTY, "yes" }));
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	policy(NULL);
	write_file(at("skill/skillsandbox.yaml"), HEAD NOTHING, 0644);
	q.options = o;
	q.consent.approval = (struct plan_approval){ by, when, tree, true, true };
	assert_int_equal(plan_decide(&q, &p, NULL, &err), 0);
	by[0] = when[0] = tree[0] = 'X';
	assert_string_equal(p->approved->by, "me");
	assert_string_equal(p->approved->at, "now");
	assert_string_equal(p->approved->tree, "sha256:00");
	assert_true(p->approved->snapshot && p->approved->counted);
	/* A run of the server does not get the server's trace output or terminal. */
	assert_null(p->trace_output);
	assert_int_equal(p->tty, TTY_NO);
	ssb_plan_free(p);
	ssb_options_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_is_lacked),
		cmocka_unit_test(gives_nothing_else),
		cmocka_unit_test(gives_variables),
		cmocka_unit_test(leaves_out_what_is_declined),
		cmocka_unit_test(does_without),
		cmocka_unit_test(tells_the_approval),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
