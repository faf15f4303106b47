/* test_plan.c - manifest, policy file and flags become a plan: which of them decides, and why. */
#include "plan_world.h"

static void test_bare_command(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(NULL, "/usr/bin/true");

	assert_string_equal(p->name, "true");
	assert_string_equal(p->version, "");
	assert_null(p->manifest);
	assert_int_equal(p->n_grants, 0);
	assert_int_equal(ssb_plan_refusals(p), 0);
	assert_string_equal(p->workdir, home);
	assert_string_equal(p->home, home);
	assert_int_equal(p->res.memory_mb, DEF_MEMORY_MB);
	assert_true(p->unix_sockets);
	assert_string_equal(env(p, "HOME"), home);
	assert_string_equal(env(p, "TMPDIR"), "/tmp");
	assert_string_equal(env(p, "LANG"), "de_DE.UTF-8");
	assert_null(strstr(env(p, "PATH"), top));
	assert_null(env(p, "SECRET"));
	assert_int_equal(p->env.n, 4);
	assert_int_equal(p->env_withheld, 5); /* the caller's variables, except LANG */
	ssb_plan_free(p);
}

static void test_skill_and_order(void **state)
{
	policy(NULL);
	struct ssb_plan *p =
	        skill(FILES("read: [~/proj, ~/notes, ~/notes/deep, ~/proj/.git], write: [~/notes]"),
	              NULL);

	assert_int_equal(p->n_refusals, 0);
	assert_string_equal(p->argv.v[0], "sh");
	assert_string_equal(p->argv.v[1], "a");
	assert_string_equal(p->workdir, "/skill");
	assert_string_equal(p->manifest, at("skill/skillsandbox.yaml"));
	/* There are three grants: /skill; ~/notes only once, writable; ~/proj, but not the
	 * protected name in it. */
	assert_int_equal(p->n_grants, 3);
	assert_string_equal(p->grants[0].target, "/skill");
	assert_string_equal(p->grants[0].path, at("skill"));
	const struct grant *g = granted(p, at("u/notes"));
	assert_non_null(g);
	assert_int_equal(g->access, ACCESS_WRITE);
	assert_true(g->is_dir && g->fd >= 0 && !g->create);
	assert_non_null(strstr(g->where, "skillsandbox.yaml:3:"));
	struct stat st;
	assert_int_equal(stat(g->path, &st), 0);
	assert_true(g->dev == st.st_dev && g->ino == st.st_ino);
	assert_int_equal(granted(p, at("u/proj"))->access, ACCESS_READ);
	assert_false(p->unix_sockets);
	assert_true(p->own_sockets);
	assert_false(warned(p, "unix sockets"));
	ssb_plan_free(p);
}

static void test_env(void **state)
{
	policy(NULL);
	struct ssb_plan *p = skill("permissions: {env_vars: {allow: [API_KEY, GITHUB_TOKEN, NONE, "
	                           "LD_PRELOAD, PATH]}}\n",
	                           FLAGS({ SSB_OPT_ENV, "SECRET" }, { SSB_OPT_ENV, "X=a=b" },
	                                 { SSB_OPT_ENV, "LANG=C" }));

	assert_string_equal(env(p, "API_KEY"), "k");
	assert_null(env(p, "GITHUB_TOKEN"));
	assert_false(warned(p, "API_KEY"));
	assert_string_equal(env(p, "PATH"), "/usr/bin:/bin");
	assert_string_equal(env(p, "SECRET"), "s");
	assert_string_equal(env(p, "X"), "a=b");
	assert_string_equal(env(p, "LANG"), "C");
	assert_int_equal(p->env_missing.n, 1);
	assert_string_equal(p->env_missing.v[0], "NONE");
	assert_non_null(refused(p, "environment LD_PRELOAD"));
	assert_null(env(p, "LD_PRELOAD"));
	ssb_plan_free(p);

	p = skill("permissions: {env_vars: {allow: [LD_PRELOAD]}}\n",
	          FLAGS({ SSB_OPT_ENV, "LD_PRELOAD" }));
	assert_int_equal(p->n_refusals, 0);
	assert_string_equal(env(p, "LD_PRELOAD"), "/x.so");
	ssb_plan_free(p);

	struct ssb_options *o = options(FLAGS({ SSB_OPT_ENV, "ABSENT" }));
	struct ssb_error err = { 0 };
	struct ssb_plan *none = NULL;
	char *argv[] = { (char[]){ "true" }, NULL };
	assert_int_equal(
	        plan_decide(&(struct plan_request){ .owner = &owner, .options = o, .args = argv },
	                    &none, NULL, &err),
	        -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	assert_null(none);
	ssb_options_free(o);
}

static const struct refusal *withheld(const struct ssb_plan *p, const char *what)
{
	for (size_t i = 0; i < p->n_withheld; i++) {
		if (strcmp(p->withheld[i].what, what) == 0) {
			return &p->withheld[i];
		}
	}
	return NULL;
}

/* A manifest alone does not get a credential. A flag and a grant in the policy file each give
 * it. */
static void test_credentials(void **state)
{
	static const char MANIFEST[] = "permissions: {env_vars: {allow: [API_KEY, GITHUB_TOKEN, "
	                               "OPENAI_API_KEY, SECRET, MAX_TOKENS]}}\n";
	policy(NULL);
	struct ssb_plan *p = skill(MANIFEST, NULL);
	const struct refusal *r = withheld(p, "environment GITHUB_TOKEN");

	assert_true(p->n_refusals == 0 && p->n_withheld == 3);
	assert_string_equal(env(p, "API_KEY"), "k"); /* passed: a key of the skill itself */
	assert_null(env(p, "SECRET"));
	assert_non_null(strstr(withheld(p, "environment SECRET")->why, "by its name"));
	assert_non_null(strstr(withheld(p, "environment SECRET")->remedy, "--env SECRET"));
	assert_null(env(p, "GITHUB_TOKEN"));
	assert_true(r->option == SSB_OPT_ENV && strcmp(r->value, "GITHUB_TOKEN") == 0);
	assert_non_null(strstr(r->why, "a credential: GitHub"));
	/* A variable that is not set is withheld, too: an approval of it is valid later. */
	assert_non_null(withheld(p, "environment OPENAI_API_KEY"));
	ssb_plan_free(p);
	p = skill(MANIFEST, FLAGS({ SSB_OPT_ENV, "GITHUB_TOKEN" }));
	assert_string_equal(env(p, "GITHUB_TOKEN"), "t");
	assert_null(withheld(p, "environment GITHUB_TOKEN"));
	ssb_plan_free(p);
	policy("grants: {env: [GITHUB_TOKEN]}\n");
	p = skill(MANIFEST, NULL);
	assert_string_equal(env(p, "GITHUB_TOKEN"), "t");
	assert_null(withheld(p, "environment GITHUB_TOKEN"));
	assert_true(warned(p, "GITHUB_TOKEN is a credential"));
	ssb_plan_free(p);
	policy("deny: {env: [GITHUB_TOKEN]}\n");
	p = skill(MANIFEST, NULL);
	assert_non_null(refused(p, "environment GITHUB_TOKEN"));
	ssb_plan_free(p);
	policy(NULL);
}

/* A key is passed without the owner's permission if its name contains the name of the skill or of
 * one of its hosts, or does not say for what it is (such as API_KEY). */
static void test_keys_of_its_own(void **state)
{
#define KEYS(name, host)                                                                           \
	"permissions: {env_vars: {allow: [" name "]}, network: {egress: [{domain: " host "}]}}\n"
	static const struct {
		const char *manifest;
		bool own;
	} CASES[] = {
		{ KEYS("API_KEY", "api.acme.example"), true },
		{ KEYS("ACME_API_KEY", "api.acme.example"), true },
		{ KEYS("ACME_API_KEY", "'*.acmeworks.example'"), true },
		{ KEYS("MY_ACME_KEY", "api.acme.example"), true },
		{ KEYS("ACME_API_KEY", "api.other.example"), false },
		{ KEYS("AP_I_TOKEN", "api.other.example"), true },
		{ KEYS("HEROKU_API_KEY", "api.heroku.com"), false },
		{ KEYS("AUTH_TOKEN", "auth.example"), false },
	};
#undef KEYS

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_plan *p = skill(CASES[i].manifest, NULL);
		if ((p->n_withheld == 0) != CASES[i].own) {
			fail_msg("%s", CASES[i].manifest);
		}
		assert_true(CASES[i].own || strstr(p->withheld[0].remedy, "--env ") != NULL);
		ssb_plan_free(p);
	}
}

/* A request that the owner withholds is neither granted nor refused. */
static void test_withhold(void **state)
{
	static const char MANIFEST[] =
	        "permissions:\n  filesystem: {read: [~/notes, ~/.ssh], write: [~/proj]}\n"
	        "  network: {egress: [{domain: a.example, ports: [443], protocol: tls}]}\n"
	        "  env_vars: {allow: [API_KEY, LD_PRELOAD]}\n";
	static const char *const ALL[] = { "read ~/notes",        "read ~/.ssh",
		                           "write ~/proj",        "connect to a.example",
		                           "environment API_KEY", "environment LD_PRELOAD" };
	policy(NULL);
	struct ssb_plan *p = skill(MANIFEST, NULL); /* the control */

	assert_int_equal(p->n_refusals, 2);
	assert_true(p->n_withheld == 0 && p->n_egress == 1 && env(p, "API_KEY") != NULL);
	assert_true(granted(p, at("u/notes")) != NULL && granted(p, at("u/proj")) != NULL);
	ssb_plan_free(p);
	p = skill(MANIFEST, FLAGS({ SSB_OPT_WITHHOLD, ALL[0] }, { SSB_OPT_WITHHOLD, ALL[1] },
	                          { SSB_OPT_WITHHOLD, ALL[2] }, { SSB_OPT_WITHHOLD, ALL[3] },
	                          { SSB_OPT_WITHHOLD, ALL[4] }, { SSB_OPT_WITHHOLD, ALL[5] },
	                          { SSB_OPT_WITHHOLD, "read ~/note" }));
	assert_true(p->n_refusals == 0 && p->n_egress == 0 && p->n_withheld == ARRAY_LEN(ALL));
	assert_true(env(p, "API_KEY") == NULL && env(p, "LD_PRELOAD") == NULL);
	assert_true(granted(p, at("u/notes")) == NULL && granted(p, at("u/proj")) == NULL);
	for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
		assert_string_equal(withheld(p, ALL[i])->why, "the owner took it out");
	}
	/* p->requested still has the withheld requests */
	assert_int_equal(p->requested.n, ARRAY_LEN(ALL));
	assert_true(warned(p, "'read ~/note' is not a request of the skill"));
	ssb_plan_free(p);
	/* If the owner also grants the withheld place by a flag, it is granted. */
	p = skill(MANIFEST, FLAGS({ SSB_OPT_WITHHOLD, ALL[0] }, { SSB_OPT_READ, "~/notes" },
	                          { SSB_OPT_READ, "~/.ssh" }, { SSB_OPT_ENV, "LD_PRELOAD" }));
	assert_int_equal(granted(p, at("u/notes"))->origin, ORIGIN_FLAG);
	ssb_plan_free(p);
}

static void test_skill_places(void **state)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	policy(NULL);
	write_file(at("u/skillsandbox.yaml"), HEAD NOTHING, 0644);
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .skill = home }, &p,
	                             NULL, &err),
	                 0);
	assert_int_equal(p->n_refusals, 1);
	assert_int_equal(p->n_grants, 0);
	ssb_plan_free(p);
	assert_int_equal(unlink(at("u/skillsandbox.yaml")), 0);

	/* The skill's own directory may be inside of an agent's directory (~/.claude), because the
	 * owner named the skill. */
	assert_int_equal(mkdir(at("u/.claude"), 0755), 0);
	assert_int_equal(mkdir(at("u/.claude/w"), 0755), 0);
	write_file(at("u/.claude/w/skillsandbox.yaml"), HEAD NOTHING, 0644);
	assert_int_equal(
	        plan_decide(&(struct plan_request){ .owner = &owner, .skill = at("u/.claude/w") },
	                    &p, NULL, &err),
	        0);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);

	p = NULL;
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .skill = at("none") },
	                             &p, NULL, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_null(p);

	/* A skill cannot write to its own code. */
	char text[256];
	snprintf(text, sizeof(text), "permissions: {filesystem: {write: [%s]}}\n", at("skill"));
	p = skill(text, NULL);
	assert_int_equal(p->n_refusals, 1);
	ssb_plan_free(p);
}

static void test_workdir(void **state)
{
	char old[512];

	policy(NULL);
	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(at("u/notes/deep")), 0);
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_READ, ".." }), "true");
	assert_non_null(granted(p, at("u/notes")));
	assert_string_equal(p->workdir, at("u/notes/deep"));
	ssb_plan_free(p);
	p = command(FLAGS({ SSB_OPT_READ, at("u/proj") }), "true");
	assert_string_equal(p->workdir, home);
	ssb_plan_free(p);
	assert_int_equal(chdir(old), 0);
}

static void test_explained(void **state)
{
	policy(NULL);
	struct ssb_plan *p = skill(
	        "permissions:\n  filesystem: {read: [~/.ssh, ~/notes]}\n"
	        "  env_vars: {allow: [API_KEY]}\n",
	        FLAGS({ SSB_OPT_ENV, "TOKEN=do-not-show" }, { SSB_OPT_BEST_EFFORT, "landlock" }));
	auto_free char *json = ssb_plan_json(p);
	auto_free char *text = ssb_plan_text(p);

	static const char *const IN_JSON[] = { "\"requested\"", "\"granted\"",
		                               "\"denied\"",    "\"what\": \"read ~/.ssh\"",
		                               "\"API_KEY\"",   "\"memory_mb\": 256",
		                               "\"landlock\"",  "\"origin\": \"manifest\"",
		                               "\"TOKEN\"" };
	for (size_t i = 0; i < ARRAY_LEN(IN_JSON); i++) {
		if (strstr(json, IN_JSON[i]) == NULL) {
			fail_msg("no %s in %s", IN_JSON[i], json);
		}
	}
	assert_non_null(strstr(text, "DENIED    read ~/.ssh"));
	assert_non_null(strstr(text, "TOKEN"));
	/* Values of variables are never shown. */
	assert_null(strstr(json, "do-not-show"));
	assert_null(strstr(text, "do-not-show"));
	ssb_plan_free(p);

	assert_int_equal(mkdir(at("u/a\033[31mb\u200b"), 0755), 0);
	p = command(FLAGS({ SSB_OPT_READ, at("u/a\033[31mb\u200b") }), "true");
	auto_free char *escaped = ssb_plan_text(p);
	assert_null(strchr(escaped, '\033'));
	assert_non_null(strstr(escaped, "\\x1b[31mb\\u{200b}"));
	ssb_plan_free(p);
}

static void test_argument_bounds(void **state)
{
	char **argv = calloc(MAX_ARGS + 2, sizeof(*argv));
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	policy(NULL);
	for (size_t i = 0; i <= MAX_ARGS; i++) {
		argv[i] = (char *)(uintptr_t) "x";
	}
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p,
	                             NULL, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	argv[MAX_ARGS] = NULL;
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p,
	                             NULL, &err),
	                 0);
	ssb_plan_free(p);
	argv[0] = NULL;
	err = (struct ssb_error){ 0 };
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p,
	                             NULL, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	free(argv);
}

static void test_owner_home(void **state)
{
	struct owner o = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(setenv("HOME", at("u/link"), 1), 0);
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", "/x/cfg", 1), 0);
	assert_int_equal(owner_load(&o, &err), 0);
	assert_string_equal(o.home, at("u/notes")); /* the real path of HOME */
	assert_string_equal(o.config_dir, "/x/cfg/skillsandbox");
	assert_string_equal(o.state_dir, at("u/notes/.local/state/skillsandbox"));
	owner_done(&o);
	assert_int_equal(setenv("HOME", "not/absolute", 1), 0);
	assert_int_equal(owner_load(&o, &err), 0);
	assert_int_equal(o.home[0], '/');
	owner_done(&o);
}

/* Writes a manifest that has the maximum number of items in each list, and asks for more than the
 * default of each resource. */
static void test_full_manifest(void **state)
{
	static const char *const EACH[] = { "permissions:\n  filesystem:\n    read: [",
		                            "/srv/r%d, ",
		                            "]\n    write: [",
		                            "/srv/w%d, ",
		                            "]\n  env_vars:\n    allow: [",
		                            "E%d, ",
		                            "]\n  network:\n    egress: [",
		                            "{domain: h%d.example}, " };
	auto_buf yaml;

	policy(NULL);
	buf_init(&yaml, MAX_YAML_BYTES);
	for (size_t k = 0; k < ARRAY_LEN(EACH); k += 2) {
		buf_adds(&yaml, EACH[k]);
		for (int i = 0; i < MAX_LIST_ITEMS; i++) {
			const char *number = strstr(EACH[k + 1], "%d");
			buf_addf(&yaml, "%.*s%d%s", (int)(number - EACH[k + 1]), EACH[k + 1], i,
			         number + 2);
		}
	}
	buf_adds(&yaml, "]\n    max_connections: 99\nresources: {memory_mb: 9999, max_disk_mb: "
	                "999, max_processes: 999}\n");
	struct ssb_plan *p = skill(yaml.data, NULL);
	assert_int_equal(p->requested.n, 4 * MAX_LIST_ITEMS + 4);
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_manifest),   cmocka_unit_test(test_bare_command),
		cmocka_unit_test(test_skill_and_order), cmocka_unit_test(test_env),
		cmocka_unit_test(test_credentials),     cmocka_unit_test(test_keys_of_its_own),
		cmocka_unit_test(test_withhold),        cmocka_unit_test(test_skill_places),
		cmocka_unit_test(test_workdir),         cmocka_unit_test(test_explained),
		cmocka_unit_test(test_argument_bounds), cmocka_unit_test(test_owner_home),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
