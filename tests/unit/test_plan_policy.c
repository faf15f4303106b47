/* test_plan_policy.c - the owner's policy file and the limits in a plan. */
#include "plan_world.h"

#include <sys/sysinfo.h>

static void test_consent_policy(void **state)
{
	static const struct {
		const char *text;
		struct consent_policy is;
	} GOOD[] = {
		{ "", { false, 0 } },
		{ "consent: {unapproved: safe}\n", { false, 0 } },
		{ "consent: {unapproved: refuse, expires: 30d}\n", { true, 30L * 86400 } },
		{ "consent: {expires: 90s}\n", { false, 90 } },
		{ "consent: {expires: 52w}\n", { false, 364L * 86400 } },
		{ "consent: {expires: 366d}\n", { false, 366L * 86400 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		policy(GOOD[i].text);
		struct ssb_plan *p = command(NULL, "true");
		assert_int_equal(p->consent.refuse, GOOD[i].is.refuse);
		assert_int_equal(p->consent.expires, GOOD[i].is.expires);
		ssb_plan_free(p);
	}
	policy(NULL);
}

static void test_limits(void **state)
{
	policy("limits: {memory_mb: 100, max_processes: 1000}\n");
	struct ssb_plan *p =
	        skill(NOTHING "resources: {memory_mb: 200, max_processes: 10}\n", NULL);

	assert_int_equal(p->res.memory_mb, 100);
	/* the policy's limit is a maximum: a smaller request is not raised */
	assert_int_equal(p->res.max_processes, 10);
	assert_true(warned(p, "memory_mb"));
	assert_false(warned(p, "max_processes"));
	ssb_plan_free(p);
	p = skill(NOTHING "resources: {memory_mb: 200}\n", FLAGS({ SSB_OPT_MEMORY, "300" }));
	/* the flag wins over the manifest and over the policy */
	assert_int_equal(p->res.memory_mb, 300);
	ssb_plan_free(p);
	p = skill(NOTHING "resources: {memory_mb: 200}\n", FLAGS({ SSB_OPT_MEMORY, "50" }));
	assert_int_equal(p->res.memory_mb, 50);
	ssb_plan_free(p);
}

/* If a manifest asks for a limit above the default, this is a request that the owner can decline. A
 * granted limit is never larger than the resources of the machine. */
static void test_limits_are_asked(void **state)
{
	static const char BIG[] = NOTHING "resources: {memory_mb: 1048576, max_disk_mb: 1048576, "
	                                  "max_runtime_seconds: 3600, max_processes: 256}\n";
	struct sysinfo machine;

	policy(NULL);
	assert_int_equal(sysinfo(&machine), 0);
	uint64_t mib = (uint64_t)machine.totalram * machine.mem_unit >> 20;
	assert_true(mib < 1048576); /* the request must be more than the machine has */
	struct ssb_plan *p = skill(BIG, NULL);
	assert_int_equal(p->requested.n, 3);
	assert_true(asked(p, "limit memory_mb 1048576") && asked(p, "limit max_disk_mb 1048576") &&
	            asked(p, "limit max_runtime_seconds 3600"));
	assert_int_equal(p->res.memory_mb, mib);
	assert_int_equal(p->res.max_disk_mb, mib);
	assert_int_equal(p->res.max_runtime_seconds, 3600);
	assert_true(warned(p, "memory_mb: 1048576 is requested, but the machine has only"));
	assert_true(warned(p, "max_disk_mb: 1048576 is requested, but the machine has only"));
	ssb_plan_free(p);

	p = skill(BIG, FLAGS({ SSB_OPT_WITHHOLD, "limit memory_mb 1048576" },
	                     { SSB_OPT_WITHHOLD, "limit max_runtime_seconds 3600" }));
	assert_int_equal(p->res.memory_mb, DEF_MEMORY_MB);
	assert_int_equal(p->res.max_runtime_seconds, DEF_RUNTIME_SECONDS);
	assert_int_equal(p->n_withheld, 2);
	ssb_plan_free(p);

	p = skill(NOTHING "resources: {memory_mb: 128}\n", NULL);
	assert_int_equal(p->requested.n, 0);
	assert_int_equal(p->res.memory_mb, 128);
	assert_int_equal(p->warnings.n, 0);
	ssb_plan_free(p);

	/* If the skill has network access, its limits for the network are requests, too. */
	p = skill("permissions: {network: {egress: [{domain: a.example}], max_bytes_out: "
	          "2147483648}}\n",
	          NULL);
	assert_true(asked(p, "limit max_bytes_out 2147483648"));
	ssb_plan_free(p);
}

static void test_profile(void **state)
{
	static const char ASKS[] = "permissions: {syscalls: {profile: permissive}}\n";
	policy(NULL);
	struct ssb_plan *p = skill(ASKS, NULL);

	assert_non_null(refused(p, "profile permissive"));
	assert_int_equal(p->profile, PROFILE_DEFAULT);
	ssb_plan_free(p);
	p = skill(ASKS, FLAGS({ SSB_OPT_PROFILE, "permissive" }));
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->profile, PROFILE_PERMISSIVE);
	ssb_plan_free(p);
	policy("profiles: [default, permissive]\n");
	p = skill(ASKS, NULL);
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->profile, PROFILE_PERMISSIVE);
	ssb_plan_free(p);
}

static void test_policy_grants_and_denials(void **state)
{
	policy("grants: {read: [~/.ssh], env: [LD_PRELOAD]}\nalways: {read: [~/notes]}\n"
	       "deny: {read: [~/proj], env: [API_KEY]}\n");
	struct ssb_plan *p =
	        skill("permissions:\n  filesystem: {read: [~/.ssh, ~/proj, ~/proj/.git]}\n"
	              "  env_vars: {allow: [LD_PRELOAD, API_KEY]}\n",
	              NULL);

	assert_non_null(granted(p, at("u/.ssh")));
	assert_int_equal(granted(p, at("u/notes"))->origin, ORIGIN_POLICY);
	assert_non_null(refused(p, "read ~/proj"));
	assert_non_null(refused(p, "read ~/proj/.git"));
	assert_non_null(refused(p, "environment API_KEY"));
	assert_non_null(env(p, "LD_PRELOAD"));
	assert_int_equal(p->n_refusals, 3);
	ssb_plan_free(p);

	/* A denied directory is refused even if a granted directory contains it. */
	policy("grants: {read: [~/]}\ndeny: {read: [~/proj]}\n");
	p = skill(FILES("read: ['~/']"), NULL);
	assert_non_null(refused(p, "read ~"));
	assert_non_null(strstr(refused(p, "read ~")->why, "denied"));
	ssb_plan_free(p);
	policy("grants: {read: [~/]}\n");
	p = skill(FILES("read: ['~/']"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	policy("grants: {read: [~/.ssh]}\nalways: {read: [~/notes]}\n");

	/* The policy file grants reading ~/.ssh. A request to write it is refused, and without a
	 * request for ~/.ssh it is not granted. */
	p = skill(FILES("write: [~/.ssh]"), NULL);
	assert_non_null(refused(p, "write ~/.ssh"));
	ssb_plan_free(p);
	p = skill(NOTHING, NULL);
	assert_null(granted(p, at("u/.ssh")));
	assert_non_null(granted(p, at("u/notes")));
	ssb_plan_free(p);
}

/* If the path of a grant in the policy file is a symlink or contains one, the symlink's target is
 * not granted. If the path of a deny entry is a symlink, both the symlink and its target are
 * denied. */
static void test_policy_symlinks(void **state)
{
	static const char *const ENTRIES[] = { "~/notes/shared", "~/notes/shared/keys",
		                               "~/by/.ssh" };
	struct ssb_plan *p;
	char text[256];

	assert_int_equal(mkdir(at("u/.ssh/keys"), 0755), 0);
	assert_int_equal(symlink("../.ssh", at("u/notes/shared")), 0);
	assert_int_equal(symlink("../u", at("u/by")), 0);
	for (size_t i = 0; i < ARRAY_LEN(ENTRIES); i++) {
		snprintf(text, sizeof(text), "grants: {read: ['%s']}\n", ENTRIES[i]);
		policy(text);
		p = skill(FILES("read: [~/.ssh/keys, ~/.ssh]"), NULL);
		assert_non_null(refused(p, "read ~/.ssh/keys"));
		assert_non_null(refused(p, "read ~/.ssh"));
		ssb_plan_free(p);
	}
	/* A deny entry with a symlink denies the symlink's own path and its target. */
	policy("deny: {read: [~/notes/shared, ~/by/proj]}\ngrants: {read: [~/.ssh]}\n");
	p = skill(FILES("read: [~/.ssh, ~/proj, ~/notes, ~/notes/shared]"), NULL);
	assert_int_equal(p->n_refusals, 4);
	assert_non_null(strstr(refused(p, "read ~/.ssh")->why, "denied"));
	assert_non_null(strstr(refused(p, "read ~/proj")->why, "denied"));
	assert_non_null(strstr(refused(p, "read ~/notes")->why, "denied"));
	ssb_plan_free(p);
	/* The controls: these grants work: the real path of the directory, and a path that begins
	 * with the value of HOME, although HOME is a symlink. */
	char by[128];
	char *const before = environment[0];
	snprintf(by, sizeof(by), "HOME=%s", at("u/by"));
	snprintf(text, sizeof(text), "grants: {read: [%s]}\n", at("u/by/.ssh"));
	environment[0] = by;
	policy(text);
	p = skill(FILES("read: [~/.ssh/keys]"), NULL);
	environment[0] = before;
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	policy("grants: {read: [~/.ssh]}\n");
	p = skill(FILES("read: [~/.ssh/keys]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	assert_int_equal(unlink(at("u/by")), 0);
	assert_int_equal(unlink(at("u/notes/shared")), 0);
	assert_int_equal(rmdir(at("u/.ssh/keys")), 0);
}

static void test_policy_errors(void **state)
{
	static const struct {
		const char *text;
		mode_t mode;
		const char *where;
	} BAD[] = {
		{ "grant: {}\n", 0600, "policy.yaml:1:1" },
		{ "limits: {memory: 5}\n", 0600, "policy.yaml:1:10" },
		{ "limits: {memory_mb: -5}\n", 0600, "policy.yaml:1:21" },
		{ "limits: {memory_mb: '5'}\n", 0600, "policy.yaml:1:21" },
		{ "grants: {read: [relative]}\n", 0600, "policy.yaml:1:17" },
		{ "grants: {read: /x}\n", 0600, "policy.yaml:1:16" },
		{ "grants: {env: ['A*']}\n", 0600, "policy.yaml:1:16" },
		{ "toolchain: maybe\n", 0600, "policy.yaml:1:12" },
		{ "unix_sockets: 1\n", 0600, "policy.yaml:1:15" },
		{ "consent: safe\n", 0600, "policy.yaml:1:10" },
		{ "consent: {unapproved: ask}\n", 0600, "policy.yaml:1:23" },
		{ "consent: {unapproved: [safe]}\n", 0600, "policy.yaml:1:23" },
		{ "consent: {expires: 30}\n", 0600, "policy.yaml:1:20" },
		{ "consent: {expires: 0d}\n", 0600, "policy.yaml:1:20" },
		{ "consent: {expires: 367d}\n", 0600, "policy.yaml:1:20" },
		{ "consent: {expires: -1d}\n", 0600, "policy.yaml:1:20" },
		{ "consent: {once: true}\n", 0600, "policy.yaml:1:11" },
		{ "profiles: [loose]\n", 0600, "policy.yaml:1:12" },
		{ "best_effort: userns\n", 0600, "policy.yaml:1:14" },
		{ "best_effort: [all]\n", 0600, "policy.yaml:1:15" },
		{ "- a\n", 0600, "policy.yaml:1:1" },
		{ "deny: {}\n", 0620, "policy.yaml" },
		{ "deny: {}\n", 0602, "policy.yaml" },
	};
	char *argv[] = { (char[]){ "true" }, NULL };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		struct ssb_plan *p = NULL;
		write_file(at("cfg/policy.yaml"), BAD[i].text, BAD[i].mode);
		if (plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p, NULL,
		                &err) == 0) {
			fail_msg("taken: %s", BAD[i].text);
		}
		assert_int_equal(err.code, SSB_E_POLICY);
		if (strstr(err.where, BAD[i].where) == NULL) {
			fail_msg("%s: at %s, not %s", BAD[i].text, err.where, BAD[i].where);
		}
		for (int k = 0; k < LAYER_COUNT && BAD[i].text[0] == 'b'; k++) {
			assert_non_null(strstr(err.text, plan_layer_name((enum layer_id)k)));
		}
	}
	policy("");
	ssb_plan_free(command(NULL, "true")); /* an empty policy is valid */
	policy("# only a comment\n");
	ssb_plan_free(command(NULL, "true"));
	policy(NULL);
	assert_int_equal(mkfifo(at("cfg/policy.yaml"), 0600), 0);
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .args = argv }, &p,
	                             NULL, &err),
	                 -1);
	policy(NULL);
	struct ssb_options *o = options(FLAGS({ SSB_OPT_POLICY_FILE, "/no/such/file" }));
	err = (struct ssb_error){ 0 };
	assert_int_equal(
	        plan_decide(&(struct plan_request){ .owner = &owner, .options = o, .args = argv },
	                    &p, NULL, &err),
	        -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	ssb_options_free(o);
}

/* Every example policy of the manual page is accepted. */
static void test_manual(void **state)
{
	char path[512];
	char line[512];
	char example[4096] = "";
	size_t n = 0;
	bool inside = false;

	snprintf(path, sizeof(path), "%s/man/skillsandbox-policy.5", getenv("SSB_SOURCE"));
	auto_file f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, ".Bd -literal", 12) == 0) {
			inside = true;
			example[0] = '\0';
		} else if (strncmp(line, ".Ed", 3) == 0) {
			/* The example of a preset is read by test_preset.c. */
			bool preset = strstr(example, "/presets/") != NULL;
			policy(preset ? "" : example);
			ssb_plan_free(command(NULL, "true"));
			inside = false;
			n++;
		} else if (inside) {
			size_t len = strlen(example);
			snprintf(example + len, sizeof(example) - len, "%s", line);
		}
	}
	policy(NULL);
	assert_int_equal(n, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consent_policy),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_profile),
		cmocka_unit_test(test_policy_grants_and_denials),
		cmocka_unit_test(test_policy_symlinks),
		cmocka_unit_test(test_policy_errors),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_limits_are_asked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
