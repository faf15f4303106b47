/* Skills of every format: which file counts, what runs, and what a plan makes of it. */
#include "plan_world.h"

#include "base/diag.h"
#include "skill/skill.h"

static char *const NO_ARGS[] = { NULL };

/* An empty skill, anew: the world's own has a manifest in other tests. */
static const char *fresh(void)
{
	static unsigned turn;
	static char name[32];

	snprintf(name, sizeof(name), "s%u", turn++);
	assert_int_equal(mkdir(at(name), 0755), 0);
	return name;
}

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	char rest[256];

	snprintf(rest, sizeof(rest), "%s/%s", dir, name);
	write_file(at(rest), text, mode);
}

static struct ssb_plan *plan_of(const char *dir, char *const args[], const struct flag *flags)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	if (plan_build_skill(&owner, o, at(dir), args, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

static void refused_with(const char *dir, char *const args[], enum ssb_code code, const char *part)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	assert_int_equal(plan_build_skill(&owner, NULL, at(dir), args, &p, NULL, &err), -1);
	if (err.code != code || strstr(err.text, part) == NULL) {
		fail_msg("%d %s: %s", err.code, err.where, err.text);
	}
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

#define FRONT(lines) "---\nname: own\ndescription: d\n" lines "---\n"
#define ASKS                                                                                       \
	FRONT("metadata: {openclaw: {requires: {env: [API_KEY, GITHUB_TOKEN, LD_PRELOAD, "         \
	      "UNSET]}}}\n")
#define SIDECAR(name)                                                                              \
	"skill: {name: " name ", version: '2'}\npermissions: {}\nentrypoint: {command: sh}\n"

static void test_order(void **state)
{
	const char *dir = fresh();
	char *args[] = { (char[]){ "a.py" }, (char[]){ "x" }, NULL };
	char side[64];
	(void)state;

	policy(NULL);
	refused_with(dir, NO_ARGS, SSB_E_NOT_FOUND, "no such manifest");
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
	assert_string_equal(p->argv.v[1], "a.py"); /* an argument as any other */
	ssb_plan_free(p);

	put(dir, "skillsandbox.yaml", SIDECAR("declared"), 0644);
	p = plan_of(dir, args, NULL);
	assert_int_equal(p->format, SKILL_DECLARED);
	assert_string_equal(p->name, "declared");
	assert_true(warned(p, "in place of what you wrote"));
	ssb_plan_free(p);

	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	assert_int_equal(skill_find(at(dir), owner.config_dir, NULL, &found, diags, &err), 0);
	assert_int_equal(ssb_diags_count(diags), 1);
	assert_string_equal(ssb_diags_get(diags, 0)->where, at(side));
	assert_int_equal(ssb_diags_get(diags, 0)->severity, SSB_ALARM);
	/* One that is broken is not passed over for what comes after it. */
	put(dir, "skillsandbox.yaml", "skill: [", 0644);
	refused_with(dir, args, SSB_E_MANIFEST, "YAML");
}

static void test_sidecar_is_the_owners(void **state)
{
	const char *dir = fresh();
	char side[64];
	(void)state;

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
	/* None of the skill's own. */
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
	(void)state;

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

	/* What is withheld names the word that gives it. */
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
	policy(NULL);

	/* The same in a manifest of ours is a refusal, or passes. */
	put(dir, "skillsandbox.yaml",
	    HEAD "permissions: {env_vars: {allow: [API_KEY, LD_PRELOAD]}}\n", 0644);
	p = plan_of(dir, args, NULL);
	assert_string_equal(env(p, "API_KEY"), "k");
	assert_int_equal(p->n_withheld, 0);
	assert_non_null(refused(p, "environment LD_PRELOAD"));
	ssb_plan_free(p);
}

static void test_scripts(void **state)
{
	const char *dir = fresh();
	char sub[64];
	static const struct {
		const char *word;
		const char *argv; /* or what is wrong */
		enum ssb_code code;
	} rows[] = {
		{ "scripts/a.py", "python3 /skill/scripts/a.py", SSB_OK },
		{ "./scripts//a.py", "python3 /skill/scripts//a.py", SSB_OK },
		{ "scripts/b", "sh -e /skill/scripts/b", SSB_OK },
		{ "scripts/c.js", "node /skill/scripts/c.js", SSB_OK },
		{ "scripts/d.mjs", "node /skill/scripts/d.mjs", SSB_OK },
		{ "scripts/e.rb", "ruby /skill/scripts/e.rb", SSB_OK },
		{ "scripts/f.pl", "perl /skill/scripts/f.pl", SSB_OK },
		{ "scripts/g.bash", "bash /skill/scripts/g.bash", SSB_OK },
		{ "scripts/h.sh", "sh /skill/scripts/h.sh", SSB_OK }, /* its #! is nowhere */
		{ "scripts/elf", "/skill/scripts/elf", SSB_OK },
		{ "link.py", "python3 /skill/link.py", SSB_OK },
		{ "scripts/i.ts", "does not say what runs it", SSB_E_USAGE },
		{ "SKILL.md", "does not say what runs it", SSB_E_USAGE },
		{ "scripts/elf-not", "not executable", SSB_E_NOT_EXEC },
		{ "scripts", "no regular file", SSB_E_USAGE },
		{ "fifo.py", "no regular file", SSB_E_USAGE },
		{ "out.py", "leaves the skill", SSB_E_POLICY },
		{ "up.py", "leaves the skill", SSB_E_POLICY },
		{ "../other/x.py", "\"..\"", SSB_E_USAGE },
		{ "scripts/../scripts/a.py", "\"..\"", SSB_E_USAGE },
		{ "/etc/passwd", "outside the skill", SSB_E_USAGE },
		{ "--help", "no path", SSB_E_USAGE },
		{ "", "no path", SSB_E_USAGE },
		{ "a\nb.py", "", SSB_E_NOT_FOUND },
		{ "a\033b.py", "not seen", SSB_E_USAGE },
		{ "nosuch.py", "scripts/a.py", SSB_E_NOT_FOUND }, /* what there is, is said */
	};
	(void)state;

	policy(NULL);
	put(dir, "SKILL.md", FRONT(""), 0644);
	snprintf(sub, sizeof(sub), "%s/scripts", dir);
	assert_int_equal(mkdir(at(sub), 0755), 0);
	put(sub, "a.py", "\xef\xbb\xbf#!/usr/bin/env python3\r\n", 0644);
	put(sub, "b", "#!/usr/bin/env -S sh -e\n", 0644);
	put(sub, "c.js", "", 0644);
	put(sub, "d.mjs", "x", 0644);
	put(sub, "e.rb", "x", 0644);
	put(sub, "f.pl", "x", 0644);
	put(sub, "g.bash", "x", 0644);
	put(sub, "h.sh", "#!/opt/no/such/interpreter\n", 0644);
	put(sub, "i.ts", "x", 0755);
	put(sub, "elf", "\177ELF", 0755);
	put(sub, "elf-not", "\177ELF", 0644);
	put("other", "x.py", "x", 0644);
	char link[600];
	snprintf(link, sizeof(link), "%s/link.py", at(dir));
	assert_int_equal(symlink("scripts/a.py", link), 0);
	snprintf(link, sizeof(link), "%s/out.py", at(dir));
	assert_int_equal(symlink("/etc/passwd", link), 0);
	snprintf(link, sizeof(link), "%s/up.py", at(dir));
	assert_int_equal(symlink("../other/x.py", link), 0);
	snprintf(link, sizeof(link), "%s/fifo.py", at(dir));
	assert_int_equal(mkfifo(link, 0644), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char word[64];
		char *args[] = { word, NULL };
		snprintf(word, sizeof(word), "%s", rows[i].word);
		if (rows[i].code != SSB_OK) {
			refused_with(dir, args, rows[i].code, rows[i].argv);
			continue;
		}
		struct ssb_plan *p = plan_of(dir, args, NULL);
		auto_buf told;
		buf_init(&told, 4096);
		for (size_t k = 0; k < p->argv.n; k++) {
			buf_addf(&told, "%s%s", k > 0 ? " " : "", p->argv.v[k]);
		}
		assert_string_equal(told.data, rows[i].argv);
		ssb_plan_free(p);
	}
	/* A first line at the cap, and one past it. */
	for (size_t past = 0; past < 2; past++) {
		char line[MAX_SHEBANG_BYTES + 2] = "#!/bin/sh ";
		char *args[] = { (char[]){ "scripts/long" }, NULL };
		memset(line + strlen(line), 'x', MAX_SHEBANG_BYTES - 1 - strlen(line) + past);
		line[MAX_SHEBANG_BYTES - 1 + past] = '\n';
		put(sub, "long", line, 0644);
		if (past > 0) {
			refused_with(dir, args, SSB_E_USAGE, "does not say");
			continue;
		}
		struct ssb_plan *p = plan_of(dir, args, NULL);
		assert_string_equal(p->argv.v[0], "/bin/sh");
		ssb_plan_free(p);
	}
	/* By its whole path, as a shell completes it. */
	char *whole[] = { at("s/scripts/a.py"), NULL };
	snprintf(whole[0], 512, "%s/%s/scripts/a.py", top, dir);
	struct ssb_plan *p = plan_of(dir, whole, NULL);
	assert_string_equal(p->argv.v[1], "/skill/scripts/a.py");
	ssb_plan_free(p);
}

static void test_no_script(void **state)
{
	const char *dir = fresh();
	struct ssb_error err = { 0 };
	(void)state;

	put(dir, "SKILL.md", ASKS, 0644);
	struct ssb_plan *p = plan_of(dir, NO_ARGS, NULL);
	assert_int_equal(p->argv.n, 0);
	assert_non_null(strstr(p->no_entry, "the skill has none"));
	assert_int_equal(p->n_withheld, 4); /* it can be looked at all the same */
	assert_int_equal(ssb_run(p, (const int[3]){ 0, 1, 2 }, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	ssb_plan_free(p);
	/* Only one: it is not guessed. */
	put(dir, "only.py", "", 0644);
	p = plan_of(dir, NULL, NULL);
	assert_int_equal(p->argv.n, 0);
	assert_non_null(strstr(p->no_entry, "there is: only.py"));
	ssb_plan_free(p);
	/* Names are made visible, and more than fit are counted. */
	for (int i = 0; i < 60; i++) {
		char name[64];
		snprintf(name, sizeof(name), "n%02d-\033[2J.py", i);
		put(dir, name, "", 0644);
	}
	p = plan_of(dir, NULL, NULL);
	assert_null(strchr(p->no_entry, '\033'));
	assert_non_null(strstr(p->no_entry, " more"));
	assert_true(strlen(p->no_entry) < sizeof(err.text));
	ssb_plan_free(p);
}

static size_t names_of(const char *dir)
{
	size_t n = 1;
	auto_buf out;

	buf_init(&out, 1 << 20);
	skill_scripts(at(dir), &out);
	for (const char *p = out.data; p != NULL && (p = strstr(p, ", ")) != NULL; p++) {
		n++;
	}
	return out.len == 0 ? 0 : n;
}

/* At each cap, and past it: what is deeper, or later, is not told of. */
static void test_script_caps(void **state)
{
	const char *dir = fresh();
	char path[256];
	(void)state;

	snprintf(path, sizeof(path), "%s", dir);
	for (size_t depth = 0; depth <= MAX_SCRIPT_DEPTH + 1; depth++) {
		put(path, "x.py", "", 0644);
		strncat(path, "/d", sizeof(path) - strlen(path) - 1);
		assert_int_equal(mkdir(at(path), 0755), 0);
	}
	assert_int_equal(names_of(dir), MAX_SCRIPT_DEPTH + 1);
	dir = fresh();
	for (size_t i = 0; i < MAX_SCRIPT_NAMES + 1; i++) {
		assert_int_equal(names_of(dir), i);
		snprintf(path, sizeof(path), "%zu.sh", i);
		put(dir, path, "", 0644);
	}
	assert_int_equal(names_of(dir), MAX_SCRIPT_NAMES);
	/* "." and ".." are looked at too. */
	dir = fresh();
	for (size_t i = 0; i < MAX_SCRIPT_WALK - 3; i++) {
		snprintf(path, sizeof(path), ".%zu", i);
		put(dir, path, "", 0644);
	}
	put(dir, "a.sh", "", 0644);
	assert_int_equal(names_of(dir), 1);
	/* Past it some are not seen, in whatever order a directory is read. */
	for (size_t i = 0; i < 2; i++) {
		char *sub = at("many");
		(void)mkdir(sub, 0755);
		for (size_t k = 0; k < 100; k++) {
			snprintf(path, sizeof(path), "%zu-%zu.sh", i, k);
			put("many", path, "", 0644);
		}
		for (size_t k = 0; i == 0 && k < MAX_SCRIPT_WALK; k++) {
			snprintf(path, sizeof(path), ".%zu", k);
			put("many", path, "", 0644);
		}
	}
	assert_true(names_of("many") < 200);
}

/* A copy is read and shown in the skill's stead; whose it is does not change. */
static void test_source(void **state)
{
	const char *dir = fresh();
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = ssb_options_new();
	char *args[] = { (char[]){ "old.py" }, NULL };
	(void)state;

	(void)mkdir(at("state"), 0700);
	assert_int_equal(mkdir(at("state/copy"), 0755), 0);
	put(dir, "SKILL.md", "---\nname: new\n---\n", 0644);
	put("state/copy", "SKILL.md", "---\nname: old\n---\n", 0644);
	put("state/copy", "old.py", "", 0644);
	o->skill_source = strdup(at("state/copy"));
	if (plan_build_skill(&owner, o, at(dir), args, &p, NULL, &err) != 0) {
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
	ssb_options_free(o);
	refused_with(dir, args, SSB_E_NOT_FOUND, "old.py"); /* it is not in the skill itself */
}

/* A place that is not to be shown is not shown for a SKILL.md either. */
static void test_danger(void **state)
{
	(void)state;
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
	(void)state;

	put(dir, "SKILL.md",
	    FRONT("metadata: {openclaw: {os: [darwin], requires: {bins: [no-such-program, sh], "
	          "anyBins: [no-such-one]}}}\n"),
	    0644);
	struct ssb_plan *p = plan_of(dir, NULL, NULL);
	assert_true(warned(p, "'no-such-program'"));
	assert_false(warned(p, "'sh'"));
	assert_true(warned(p, "'no-such-one'"));
	assert_true(warned(p, "not made for Linux"));
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
		cmocka_unit_test(test_order),       cmocka_unit_test(test_sidecar_is_the_owners),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_no_script),   cmocka_unit_test(test_script_caps),
		cmocka_unit_test(test_source),      cmocka_unit_test(test_danger),
		cmocka_unit_test(test_warnings),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
