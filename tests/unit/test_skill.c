/* test_skill.c - skills of every format: which file is used, which program runs, and which plan the
 * skill gets. */
#include "skill_world.h"

#include "base/diag.h"

static const struct refusal *withheld(const struct ssb_plan *p, const char *what)
{
	for (size_t i = 0; i < p->n_withheld; i++) {
		if (strcmp(p->withheld[i].what, what) == 0) {
			return &p->withheld[i];
		}
	}
	return NULL;
}

#define SIDECAR(name)                                                                              \
	"skill: {name: " name ", version: '2'}\npermissions: {}\nentrypoint: {command: sh}\n"

static void test_order(void **state)
{
	const char *dir = fresh();
	char *args[] = { (char[]){ "a.py" }, (char[]){ "x" }, NULL };
	char side[64];

	policy(NULL);
	refused_with(dir, NO_ARGS, SSB_E_NOT_FOUND, "this directory is not a skill");
	assert_false(skill_is_one(at(dir)));
	put(dir, "manifest.yaml", "name: c/ware\n", 0644);
	assert_false(skill_is_one(at(dir)));
	put(dir, "skill.py", "", 0644);
	assert_true(skill_is_one(at(dir)));
	struct ssb_plan *p = plan_of(dir, args, NULL);
	assert_int_equal(p->format, SKILL_SKILLWARE);
	assert_string_equal(p->name, "ware");
	assert_int_equal(p->argv.n, 6);
	assert_string_equal(p->argv.v[1], SKILL_WORKER);
	ssb_plan_free(p);

	put(dir, "SKILL.md", FRONT(""), 0644);
	put(dir, "a.py", "", 0644);
	p = plan_of(dir, args, NULL);
	assert_int_equal(p->format, SKILL_MARKDOWN);
	assert_string_equal(p->name, "own");
	assert_string_equal(p->argv.v[0], "python3");
	assert_string_equal(p->argv.v[1], "/skill/a.py");
	assert_string_equal(p->argv.v[2], "x");
	assert_string_equal(p->skill_dir, at(dir));
	ssb_plan_free(p);

	(void)mkdir(at("cfg/skills"), 0755);
	snprintf(side, sizeof(side), "cfg/skills/%s.yaml", dir);
	write_file(at(side), SIDECAR("mine"), 0600);
	p = plan_of(dir, args, NULL);
	assert_int_equal(p->format, SKILL_SIDECAR);
	assert_string_equal(p->name, "mine");
	assert_string_equal(p->manifest, at(side));
	assert_string_equal(p->skill_dir, at(dir));
	assert_string_equal(p->argv.v[1], "a.py"); /* not a script, but an ordinary argument */
	ssb_plan_free(p);

	put(dir, "skillsandbox.yaml", SIDECAR("declared"), 0644);
	p = plan_of(dir, args, NULL);
	assert_int_equal(p->format, SKILL_DECLARED);
	assert_string_equal(p->name, "declared");
	assert_true(warned(p, "is used instead of your"));
	ssb_plan_free(p);

	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	assert_int_equal(skill_find(at(dir), owner.config_dir, NULL, &found, diags, &err), 0);
	assert_int_equal(ssb_diags_count(diags), 1);
	assert_string_equal(ssb_diags_get(diags, 0)->where, at(side));
	assert_int_equal(ssb_diags_get(diags, 0)->severity, SSB_ALARM);
	/* If the manifest that has priority is invalid, the plan fails, and no other file is used
	 * instead. */
	put(dir, "skillsandbox.yaml", "skill: [", 0644);
	refused_with(dir, args, SSB_E_MANIFEST, "YAML");
}

#define NO_ENTRY "skill: {name: many, version: '2'}\npermissions: {}\n"

static void runs(const char *dir, char *const args[], const char *first, const char *second,
                 const char *third)
{
	struct ssb_plan *p = plan_of(dir, args, NULL);

	assert_true(p->by_script);
	assert_false(plan_lacks_script(p));
	assert_int_equal(p->argv.n, 3);
	assert_string_equal(p->argv.v[0], first);
	assert_string_equal(p->argv.v[1], second);
	assert_string_equal(p->argv.v[2], third);
	ssb_plan_free(p);
}

static void sidecar_for(const char *side, const char *dir)
{
	char text[256];

	snprintf(text, sizeof(text),
	         "skill: {name: many, version: '2', directory: %s}\npermissions: {}\n", dir);
	write_file(at(side), text, 0600);
}

/* Without an entrypoint the first argument names the script, as in a skill without a manifest,
 * whether the manifest is the skill's or the owner's. */
static void test_many_scripts(void **state)
{
	const char *dir = fresh();
	char *one[] = { (char[]){ "a.py" }, (char[]){ "x" }, NULL };
	char *two[] = { (char[]){ "b.sh" }, (char[]){ "a.py" }, NULL };
	char *no[] = { (char[]){ "c.py" }, NULL };
	char side[64];

	put(dir, "SKILL.md", FRONT(""), 0644);
	put(dir, "a.py", "", 0644);
	put(dir, "b.sh", "#!/bin/bash\n", 0644);
	(void)mkdir(at("cfg/skills"), 0755);
	snprintf(side, sizeof(side), "cfg/skills/%s.yaml", dir);
	for (int i = 0; i < 3; i++) {
		runs(dir, one, "python3", "/skill/a.py", "x");
		runs(dir, two, "/bin/bash", "/skill/b.sh", "a.py");
		refused_with(dir, no, SSB_E_NOT_FOUND, "the skill has: a.py, b.sh");
		struct ssb_plan *p = plan_of(dir, NO_ARGS, NULL);
		assert_int_equal(p->format, i == 0   ? SKILL_MARKDOWN
		                            : i == 1 ? SKILL_SIDECAR
		                                     : SKILL_DECLARED);
		assert_true(plan_lacks_script(p));
		assert_string_equal(p->scripts, "a.py, b.sh");
		ssb_plan_free(p);
		if (i == 0) {
			write_file(at(side), NO_ENTRY, 0600);
		} else {
			(void)unlink(at(side));
			put(dir, "skillsandbox.yaml", NO_ENTRY, 0644);
		}
	}
	/* With an entrypoint, the name of another script is an argument, and a warning says so. */
	put(dir, "skillsandbox.yaml", NO_ENTRY "entrypoint: {command: python3, args: [a.py]}\n",
	    0644);
	struct ssb_plan *p = plan_of(dir, two, NULL);
	assert_false(p->by_script);
	assert_string_equal(p->argv.v[1], "a.py");
	assert_string_equal(p->argv.v[2], "b.sh");
	assert_true(warned(p, "'b.sh' is passed to the entrypoint as an argument"));
	assert_true(warned(p, "remove the entrypoint"));
	ssb_plan_free(p);
	p = plan_of(dir, one, NULL);
	assert_false(warned(p, "is passed to the entrypoint"));
	ssb_plan_free(p);
	/* Without a SKILL.md, the entrypoint cannot be removed. */
	put(dir, "skillsandbox.yaml", NO_ENTRY "entrypoint: {command: python3, args: [a.py]}\n",
	    0644);
	char file[64];
	snprintf(file, sizeof(file), "%s/SKILL.md", dir);
	assert_int_equal(unlink(at(file)), 0);
	p = plan_of(dir, two, NULL);
	assert_true(warned(p, "is passed to the entrypoint"));
	assert_false(warned(p, "remove the entrypoint"));
	ssb_plan_free(p);
	put(dir, "skillsandbox.yaml", NO_ENTRY, 0644);
	refused_with(dir, one, SSB_E_MANIFEST, "entrypoint is missing");
	snprintf(file, sizeof(file), "%s/skillsandbox.yaml", dir);
	assert_int_equal(unlink(at(file)), 0);
	sidecar_for(side, at(dir));
	refused_with(dir, one, SSB_E_MANIFEST, "entrypoint is missing");
	/* The owner's manifest for another directory is passed over, without an error. */
	sidecar_for(side, "/srv/other");
	p = plan_of(dir, one, NULL);
	assert_int_equal(p->format, SKILL_SCRIPT);
	ssb_plan_free(p);
}

static void test_sidecar_is_the_owners(void **state)
{
	const char *dir = fresh();
	char side[64];

	put(dir, "SKILL.md", FRONT(""), 0644);
	(void)mkdir(at("cfg/skills"), 0755);
	snprintf(side, sizeof(side), "cfg/skills/%s.yaml", dir);
	write_file(at(side), SIDECAR("mine"), 0620);
	refused_with(dir, NO_ARGS, SSB_E_POLICY, "others can write");
	write_file(at(side), SIDECAR("mine"), 0602);
	refused_with(dir, NO_ARGS, SSB_E_POLICY, "others can write");
	write_file(at(side), "skill: {}\n", 0600);
	refused_with(dir, NO_ARGS, SSB_E_MANIFEST, "");
	(void)unlink(at(side));
	assert_int_equal(mkdir(at(side), 0755), 0);
	refused_with(dir, NO_ARGS, SSB_E_POLICY, "not a regular file");
	assert_int_equal(rmdir(at(side)), 0);
	if (getuid() == 0) {
		write_file(at(side), SIDECAR("mine"), 0600);
		assert_int_equal(chown(at(side), 4242, 4242), 0);
		refused_with(dir, NO_ARGS, SSB_E_POLICY, "belongs to uid 4242");
	}
	write_file(at(side), SIDECAR("mine"), 0600);
	struct ssb_plan *p = plan_of(dir, NO_ARGS, NULL);
	assert_int_equal(p->format, SKILL_SIDECAR);
	ssb_plan_free(p);
	/* A sidecar in the skill's own directory is ignored. */
	(void)unlink(at(side));
	assert_int_equal(mkdir(at("s_inner"), 0755), 0);
	put("s_inner", "SKILL.md", FRONT(""), 0644);
	assert_int_equal(mkdir(at("s_inner/skills"), 0755), 0);
	put("s_inner/skills", "s_inner.yaml", SIDECAR("hers"), 0644);
	p = plan_of("s_inner", NO_ARGS, NULL);
	assert_int_equal(p->format, SKILL_MARKDOWN);
	ssb_plan_free(p);
}

static void test_environment(void **state)
{
	const char *dir = fresh();
	char *args[] = { (char[]){ "a.sh" }, NULL };

	put(dir, "SKILL.md", ASKS, 0644);
	put(dir, "a.sh", "", 0644);
	policy(NULL);
	struct ssb_plan *p = plan_of(dir, args, NULL);
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_withheld, 4);
	assert_int_equal(p->requested.n, 4);
	assert_null(env(p, "API_KEY"));
	assert_null(env(p, "LD_PRELOAD"));
	assert_string_equal(p->env_missing.v[0], "UNSET");
	const struct refusal *r = withheld(p, "environment API_KEY");
	assert_non_null(r);
	assert_int_equal(r->option, SSB_OPT_ENV);
	assert_string_equal(r->value, "API_KEY");
	assert_non_null(strstr(r->where, "SKILL.md:4:"));
	assert_non_null(strstr(r->remedy, "--env API_KEY"));
	assert_non_null(strstr(withheld(p, "environment GITHUB_TOKEN")->why, "credential"));
	assert_non_null(strstr(withheld(p, "environment LD_PRELOAD")->why, "loader"));
	auto_free char *json = ssb_plan_json(p);
	auto_free char *text = ssb_plan_text(p);
	assert_non_null(strstr(json, "\"withheld\": ["));
	assert_non_null(strstr(json, "\"format\": \"SKILL.md\""));
	assert_non_null(strstr(text, "withheld  environment API_KEY: SKILL.md asks for it"));
	ssb_plan_free(p);

	/* The skill gets the variable by the option that the remedy names. */
	p = plan_of(dir, args,
	            FLAGS({ SSB_OPT_ENV, "API_KEY" }, { SSB_OPT_ENV, "GITHUB_TOKEN=2" }));
	assert_string_equal(env(p, "API_KEY"), "k");
	assert_string_equal(env(p, "GITHUB_TOKEN"), "2");
	assert_int_equal(p->n_withheld, 2);
	ssb_plan_free(p);

	policy("grants: {env: [API_KEY]}\ndeny: {env: [GITHUB_TOKEN]}\n");
	p = plan_of(dir, args, NULL);
	assert_string_equal(env(p, "API_KEY"), "k");
	assert_int_equal(p->n_refusals, 0);
	r = withheld(p, "environment GITHUB_TOKEN");
	assert_non_null(strstr(r->why, "policy file denies"));
	assert_null(r->value);
	ssb_plan_free(p);

	/* A variable that the policy file both grants and denies is not passed. */
	policy("grants: {env: [API_KEY, LD_PRELOAD]}\ndeny: {env: [API_KEY, LD_PRELOAD]}\n");
	p = plan_of(dir, args, NULL);
	assert_null(env(p, "API_KEY"));
	assert_null(env(p, "LD_PRELOAD"));
	r = withheld(p, "environment API_KEY");
	assert_non_null(r);
	assert_non_null(strstr(r->why, "policy file denies"));
	assert_null(r->value);
	ssb_plan_free(p);
	policy(NULL);

	/* In a skillsandbox.yaml, the same requests are granted or refused, but not withheld. */
	put(dir, "skillsandbox.yaml",
	    HEAD "permissions: {env_vars: {allow: [API_KEY, LD_PRELOAD]}}\n", 0644);
	p = plan_of(dir, args, NULL);
	assert_string_equal(env(p, "API_KEY"), "k");
	assert_int_equal(p->n_withheld, 0);
	assert_non_null(refused(p, "environment LD_PRELOAD"));
	ssb_plan_free(p);
}

/* If a run uses a stored copy (.source), the copy is read and shown as /skill, but skill_dir is
 * still the directory of the skill. */
static void test_source(void **state)
{
	const char *dir = fresh();
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	char *args[] = { (char[]){ "old.py" }, NULL };

	(void)mkdir(at("state"), 0700);
	assert_int_equal(mkdir(at("state/copy"), 0755), 0);
	put(dir, "SKILL.md", "---\nname: new\n---\n", 0644);
	put("state/copy", "SKILL.md", "---\nname: old\n---\n", 0644);
	put("state/copy", "old.py", "", 0644);
	if (plan_decide(&(struct plan_request){ .owner = &owner,
	                                        .skill = at(dir),
	                                        .args = args,
	                                        .consent = { .source = at("state/copy") } },
	                &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	assert_int_equal(p->n_refusals, 0);
	assert_string_equal(p->name, "old");
	assert_string_equal(p->skill_dir, at(dir));
	assert_int_equal(p->n_grants, 1);
	assert_string_equal(p->grants[0].path, at("state/copy"));
	assert_string_equal(p->grants[0].target, "/skill");
	char file[64];
	snprintf(file, sizeof(file), "%s/SKILL.md", dir);
	assert_string_equal(p->manifest, at(file));
	ssb_plan_free(p);
	/* the script is only in the copy, not in the skill's directory */
	refused_with(dir, args, SSB_E_NOT_FOUND, "old.py");
}

/* A dangerous directory (here the home) is refused as the directory of a skill, even if it has a
 * SKILL.md. */
static void test_danger(void **state)
{
	put("u", "SKILL.md", FRONT(""), 0644);
	put("u", "a.py", "", 0644);
	char *args[] = { (char[]){ "a.py" }, NULL };
	struct ssb_plan *p = plan_of("u", args, NULL);
	assert_true(p->n_refusals > 0);
	ssb_plan_free(p);
	(void)unlink(at("u/SKILL.md"));
}

static void test_warnings(void **state)
{
	const char *dir = fresh();

	put(dir, "SKILL.md",
	    FRONT("metadata: {openclaw: {os: [darwin], requires: {bins: [no-such-program, sh], "
	          "anyBins: [no-such-one]}}}\n"),
	    0644);
	struct ssb_plan *p = plan_of(dir, NULL, NULL);
	assert_true(warned(p, "'no-such-program'"));
	assert_false(warned(p, "'sh'"));
	assert_true(warned(p, "'no-such-one'"));
	assert_true(warned(p, "not for Linux"));
	ssb_plan_free(p);
	put(dir, "SKILL.md",
	    FRONT("metadata: {openclaw: {os: [linux, darwin], requires: {anyBins: [no-such-one, "
	          "sh]}}}\n"),
	    0644);
	p = plan_of(dir, NULL, NULL);
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_many_scripts),
		cmocka_unit_test(test_sidecar_is_the_owners),
		cmocka_unit_test(test_environment),

		cmocka_unit_test(test_source),
		cmocka_unit_test(test_danger),
		cmocka_unit_test(test_warnings),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
