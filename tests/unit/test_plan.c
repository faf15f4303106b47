/* Manifest, policy file and flags become a plan: who wins, and why. */
#include "plan_world.h"

#include <sys/sysinfo.h>

static void test_bare_command(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(NULL, "/usr/bin/true");
	(void)state;

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
	assert_int_equal(p->env_withheld, 5); /* all but LANG */
	ssb_plan_free(p);
}

static void test_skill_and_order(void **state)
{
	policy(NULL);
	struct ssb_plan *p =
	        skill(FILES("read: [~/proj, ~/notes, ~/notes/deep, ~/proj/.git], write: [~/notes]"),
	              NULL);
	(void)state;

	assert_int_equal(p->n_refusals, 0);
	assert_string_equal(p->argv.v[0], "sh");
	assert_string_equal(p->argv.v[1], "a");
	assert_string_equal(p->workdir, "/skill");
	assert_string_equal(p->manifest, at("skill/skillsandbox.yaml"));
	/* /skill; notes, once and writable; proj without its own part. */
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
	assert_true(warned(p, "unix sockets"));
	ssb_plan_free(p);
}

static void test_nested_grants(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(
	        FLAGS({ SSB_OPT_WRITE, at("u/proj") }, { SSB_OPT_WRITE, at("u/proj/.git/hooks") },
	              { SSB_OPT_READ, at("u/notes") }, { SSB_OPT_WRITE, at("u/notes/deep") },
	              { SSB_OPT_READ, at("u/notes") }),
	        "true");
	(void)state;

	/* A protected name is granted beside its parent; a write in a read too. */
	assert_int_equal(p->n_grants, 4);
	assert_string_equal(p->grants[0].path, at("u/notes"));
	assert_string_equal(p->grants[1].path, at("u/notes/deep"));
	assert_string_equal(p->grants[2].path, at("u/proj"));
	assert_string_equal(p->grants[3].path, at("u/proj/.git/hooks"));
	ssb_plan_free(p);
}

static void test_dangerous_requests(void **state)
{
	static const char *const REFUSED[] = {
		"read ~",
		"read ~/.ssh",
		"read ~/.aws/credentials",
		"read /",
		"read /proc",
		"read /etc/shadow",
		"read /run",
		"read ~/link/deep",
		"write ~/.config",
		"write ~/.bashrc",
		"write /etc/x",
		"write /usr/local/x",
		"write ~/proj/.git",
		"write ~/proj/.git/hooks",
		"write ~/new/.vscode",
	};
	policy(NULL);
	struct ssb_plan *p = skill(
	        FILES("read: ['~/', ~/.ssh, ~/.aws/credentials, /, /proc, /etc/shadow, /run, "
	              "~/link/deep, ~/notes], write: [~/.config, ~/.bashrc, /etc/x, /usr/local/x, "
	              "~/proj/.git, ~/proj/.git/hooks, ~/new/.vscode]"),
	        NULL);
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
		const struct refusal *r = refused(p, REFUSED[i]);
		if (r == NULL) {
			fail_msg("'%s' was not refused", REFUSED[i]);
		}
		assert_true(r->why[0] != '\0' && r->remedy[0] != '\0' && r->where[0] != '\0');
	}
	assert_int_equal(p->n_refusals, ARRAY_LEN(REFUSED));
	assert_non_null(strstr(refused(p, "read ~/.ssh")->remedy, "--read ~/.ssh"));
	assert_non_null(strstr(refused(p, "read ~/link/deep")->remedy, at("u/notes/deep")));
	/* The control beside them, and nothing else. */
	assert_non_null(granted(p, at("u/notes")));
	assert_int_equal(p->n_grants, 2);
	ssb_plan_free(p);
}

/* An offer is a word that would lift the refusal: for a path through a symlink there is
 * none, since the manifest's path is refused as before. */
static void test_offers(void **state)
{
	(void)state;
	policy(NULL);
	assert_int_equal(symlink(".ssh", at("u/keys")), 0);
	assert_int_equal(symlink("proj", at("u/work")), 0);
	struct ssb_plan *p =
	        skill(FILES("read: [~/.ssh, ~/keys], write: [~/keys, ~/proj/.git/hooks,"
	                    " ~/work/.git/hooks]"),
	              NULL);
	assert_string_equal(refused(p, "read ~/.ssh")->value, "~/.ssh");
	assert_int_equal(refused(p, "read ~/.ssh")->kind, REFUSAL_READ);
	assert_string_equal(refused(p, "write ~/proj/.git/hooks")->value, "~/proj/.git/hooks");
	static const char *const LED[] = { "read ~/keys", "write ~/keys",
		                           "write ~/work/.git/hooks" };
	for (size_t i = 0; i < ARRAY_LEN(LED); i++) {
		const struct refusal *r = refused(p, LED[i]);
		assert_null(r->value);
		assert_non_null(strstr(r->remedy, "declare the real path: /"));
		assert_int_equal(r->kind, LED[i][0] == 'w' ? REFUSAL_WRITE : REFUSAL_READ);
	}
	ssb_plan_free(p);
	p = skill(FILES("read: [~/keys]"), FLAGS({ SSB_OPT_READ, "~/keys" }));
	assert_non_null(refused(p, "read ~/keys"));
	ssb_plan_free(p);
	p = skill("permissions: {network: {egress: [{domain: 10.0.0.1}]}, env_vars: "
	          "{allow: [LD_PRELOAD]}}\n",
	          NULL);
	assert_int_equal(refused(p, "connect to 10.0.0.1")->kind, REFUSAL_NETWORK);
	assert_int_equal(refused(p, "environment LD_PRELOAD")->kind, REFUSAL_OTHER);
	ssb_plan_free(p);
	assert_int_equal(unlink(at("u/keys")), 0);
	assert_int_equal(unlink(at("u/work")), 0);
}

static void test_owner_grants(void **state)
{
	policy(NULL);
	struct ssb_plan *p =
	        skill(FILES("read: [~/.ssh, ~/.ssh/none]"), FLAGS({ SSB_OPT_READ, "~/.ssh" }));
	(void)state;

	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(granted(p, at("u/.ssh"))->origin, ORIGIN_FLAG);
	assert_true(warned(p, "SSH keys"));
	ssb_plan_free(p);

	/* The read does not give the write. */
	p = skill(FILES("write: [~/.ssh]"), FLAGS({ SSB_OPT_READ, "~/.ssh" }));
	assert_non_null(refused(p, "write ~/.ssh"));
	ssb_plan_free(p);

	/* The owner's own links may be followed; relative paths too. */
	p = command(FLAGS({ SSB_OPT_READ, "~/link" }), "true");
	assert_non_null(granted(p, at("u/notes")));
	ssb_plan_free(p);

	p = command(FLAGS({ SSB_OPT_READ, "~/" }), "true");
	assert_int_equal(p->n_refusals, 0);
	assert_true(warned(p, ".ssh"));
	ssb_plan_free(p);
}

static void test_never(void **state)
{
	static const struct flag NEVER[] = {
		{ SSB_OPT_READ, "/proc" },      { SSB_OPT_WRITE, "/sys/kernel" },
		{ SSB_OPT_WRITE, "/dev" },      { SSB_OPT_WRITE, "/" },
		{ SSB_OPT_READ, "/no/such" },   { SSB_OPT_READ, "/dev/pts" },
		{ SSB_OPT_WRITE, "/proc/sys" },
	};
	policy(NULL);
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(NEVER); i++) {
		struct ssb_plan *p = command(FLAGS(NEVER[i]), "true");
		assert_int_equal(p->n_refusals, 1);
		assert_int_equal(p->n_grants, 0);
		ssb_plan_free(p);
	}
	/* The runtime's records, there or not, and what holds them. */
	struct ssb_plan *p =
	        command(FLAGS({ SSB_OPT_WRITE, at("state") }, { SSB_OPT_WRITE, top }), "true");
	assert_int_equal(p->n_refusals, 2);
	ssb_plan_free(p);
	p = command(FLAGS({ SSB_OPT_WRITE, at("other") }), "true");
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
}

static void test_kernel_and_devices(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(
	        FLAGS({ SSB_OPT_READ, "/sys/kernel" }, { SSB_OPT_WRITE, "/dev/null" }), "true");
	(void)state;

	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(granted(p, "/sys/kernel")->kind, GRANT_KERNEL);
	assert_int_equal(granted(p, "/dev/null")->kind, GRANT_DEVICES);
	assert_true(warned(p, "/sys/kernel") && warned(p, "/dev/null"));
	assert_true(p->unix_sockets);
	ssb_plan_free(p);
	p = skill(FILES("read: [/sys/kernel], write: [/dev/null]"), NULL);
	assert_non_null(refused(p, "read /sys/kernel"));
	assert_non_null(refused(p, "write /dev/null"));
	ssb_plan_free(p);
}

static void test_whole(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_READ, "/" }), "true");
	(void)state;

	assert_int_equal(p->n_refusals, 0);
	assert_true(p->n_grants > 3);
	assert_true(warned(p, "whole machine"));
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		assert_true(g->of_whole && g->access == ACCESS_READ);
		/* Neither what is the sandbox's own, nor what holds it. */
		static const char *const OWN[] = { "/proc", "/dev", "/etc", "/tmp", "/var/tmp" };
		for (size_t k = 0; k <= ARRAY_LEN(OWN); k++) {
			const char *own = k < ARRAY_LEN(OWN) ? OWN[k] : home;
			assert_null(path_beneath(g->path, own));
			assert_null(path_beneath(own, g->path));
		}
	}
	ssb_plan_free(p);
	p = skill(FILES("read: [/]"), NULL);
	assert_non_null(refused(p, "read /"));
	assert_false(warned(p, "whole machine"));
	ssb_plan_free(p);
}

static void test_cannot_be_granted(void **state)
{
	policy(NULL);
	assert_int_equal(mkfifo(at("u/fifo"), 0600), 0);
	struct ssb_plan *p =
	        skill(FILES("read: [~/fifo, /skill/x, ~/notes/absent, /usr/share]"), NULL);
	(void)state;

	assert_non_null(refused(p, "read ~/fifo"));
	assert_non_null(refused(p, "read /skill/x"));
	assert_true(warned(p, "~/notes/absent"));
	assert_int_equal(p->n_refusals, 2);
	assert_int_equal(p->n_grants, 1); /* what is visible anyway needs none */
	ssb_plan_free(p);
}

static void test_create_missing(void **state)
{
	struct ssb_error err = { 0 };
	struct stat st;
	policy(NULL);
	struct ssb_plan *p = skill(FILES("write: [~/out/a/b, ~/out/c], read: [~/out/c]"), NULL);
	(void)state;

	assert_int_equal(p->n_refusals, 0);
	const struct grant *g = granted(p, at("u/out/a/b"));
	assert_true(g->create && g->fd == -1 && g->parent_fd >= 0);
	assert_string_equal(g->missing, "out/a/b");
	assert_int_equal(stat(at("u/out"), &st), -1); /* planning changed nothing */
	assert_int_equal(plan_create_missing(p, &err), 0);
	assert_int_equal(stat(at("u/out/a/b"), &st), 0);
	assert_true(g->fd >= 0 && g->dev == st.st_dev && g->ino == st.st_ino);
	assert_int_equal(stat(at("u/out/c"), &st), 0);
	ssb_plan_free(p);

	/* A symlink put there meanwhile is not followed. */
	p = skill(FILES("write: [~/later]"), NULL);
	assert_int_equal(symlink("notes", at("u/later")), 0);
	assert_int_equal(plan_create_missing(p, &err), -1);
	assert_int_equal(granted(p, at("u/later"))->fd, -1);
	ssb_plan_free(p);
}

static void test_env(void **state)
{
	policy(NULL);
	struct ssb_plan *p = skill("permissions: {env_vars: {allow: [API_KEY, GITHUB_TOKEN, NONE, "
	                           "LD_PRELOAD, PATH]}}\n",
	                           FLAGS({ SSB_OPT_ENV, "SECRET" }, { SSB_OPT_ENV, "X=a=b" },
	                                 { SSB_OPT_ENV, "LANG=C" }));
	(void)state;

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
	assert_int_equal(plan_build_command(&owner, o, argv, &none, NULL, &err), -1);
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

/* No manifest gives a credential; each word of the owner's does. */
static void test_credentials(void **state)
{
	static const char MANIFEST[] = "permissions: {env_vars: {allow: [API_KEY, GITHUB_TOKEN, "
	                               "OPENAI_API_KEY]}}\n";
	policy(NULL);
	struct ssb_plan *p = skill(MANIFEST, NULL);
	const struct refusal *r = withheld(p, "environment GITHUB_TOKEN");
	(void)state;

	assert_true(p->n_refusals == 0 && p->n_withheld == 2);
	assert_string_equal(env(p, "API_KEY"), "k"); /* the skill's own */
	assert_null(env(p, "GITHUB_TOKEN"));
	assert_true(r->option == SSB_OPT_ENV && strcmp(r->value, "GITHUB_TOKEN") == 0);
	assert_non_null(strstr(r->why, "a credential: GitHub"));
	/* Not set, it is withheld all the same: what is approved holds later. */
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

/* What the owner takes out is gone, whether it would have been granted or refused. */
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
	(void)state;

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
	assert_int_equal(p->requested.n, ARRAY_LEN(ALL)); /* it was asked for all the same */
	assert_true(warned(p, "'read ~/note' is nothing that it asks for"));
	ssb_plan_free(p);
	/* The owner's own word beside it stands. */
	p = skill(MANIFEST, FLAGS({ SSB_OPT_WITHHOLD, ALL[0] }, { SSB_OPT_READ, "~/notes" },
	                          { SSB_OPT_READ, "~/.ssh" }, { SSB_OPT_ENV, "LD_PRELOAD" }));
	assert_int_equal(granted(p, at("u/notes"))->origin, ORIGIN_FLAG);
	ssb_plan_free(p);
}

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
	(void)state;

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
	(void)state;

	assert_int_equal(p->res.memory_mb, 100);
	assert_int_equal(p->res.max_processes, 10); /* a ceiling, not a floor */
	assert_true(warned(p, "memory_mb"));
	assert_false(warned(p, "max_processes"));
	ssb_plan_free(p);
	p = skill(NOTHING "resources: {memory_mb: 200}\n", FLAGS({ SSB_OPT_MEMORY, "300" }));
	assert_int_equal(p->res.memory_mb, 300); /* the flag has the last word */
	ssb_plan_free(p);
	p = skill(NOTHING "resources: {memory_mb: 200}\n", FLAGS({ SSB_OPT_MEMORY, "50" }));
	assert_int_equal(p->res.memory_mb, 50);
	ssb_plan_free(p);
}

static void test_profile(void **state)
{
	static const char ASKS[] = "permissions: {syscalls: {profile: permissive}}\n";
	policy(NULL);
	struct ssb_plan *p = skill(ASKS, NULL);
	(void)state;

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
	(void)state;

	assert_non_null(granted(p, at("u/.ssh")));
	assert_int_equal(granted(p, at("u/notes"))->origin, ORIGIN_POLICY);
	assert_non_null(refused(p, "read ~/proj"));
	assert_non_null(refused(p, "read ~/proj/.git"));
	assert_non_null(refused(p, "environment API_KEY"));
	assert_non_null(env(p, "LD_PRELOAD"));
	assert_int_equal(p->n_refusals, 3);
	ssb_plan_free(p);

	/* What is denied stays so, however much else is in what is granted. */
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

	/* Only what a manifest asks; and never a write by a read. */
	p = skill(FILES("write: [~/.ssh]"), NULL);
	assert_non_null(refused(p, "write ~/.ssh"));
	ssb_plan_free(p);
	p = skill(NOTHING, NULL);
	assert_null(granted(p, at("u/.ssh")));
	assert_non_null(granted(p, at("u/notes")));
	ssb_plan_free(p);
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
		{ "- a\n", 0600, "policy.yaml:1:1" },
		{ "deny: {}\n", 0620, "policy.yaml" },
		{ "deny: {}\n", 0602, "policy.yaml" },
	};
	char *argv[] = { (char[]){ "true" }, NULL };
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		struct ssb_plan *p = NULL;
		write_file(at("cfg/policy.yaml"), BAD[i].text, BAD[i].mode);
		if (plan_build_command(&owner, NULL, argv, &p, NULL, &err) == 0) {
			fail_msg("taken: %s", BAD[i].text);
		}
		assert_int_equal(err.code, SSB_E_POLICY);
		if (strstr(err.where, BAD[i].where) == NULL) {
			fail_msg("%s: at %s, not %s", BAD[i].text, err.where, BAD[i].where);
		}
	}
	policy("");
	ssb_plan_free(command(NULL, "true")); /* says nothing: fine */
	policy("# only a comment\n");
	ssb_plan_free(command(NULL, "true"));
	policy(NULL);
	assert_int_equal(mkfifo(at("cfg/policy.yaml"), 0600), 0);
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	assert_int_equal(plan_build_command(&owner, NULL, argv, &p, NULL, &err), -1);
	policy(NULL);
	struct ssb_options *o = options(FLAGS({ SSB_OPT_POLICY_FILE, "/no/such/file" }));
	err = (struct ssb_error){ 0 };
	assert_int_equal(plan_build_command(&owner, o, argv, &p, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	ssb_options_free(o);
}

/* Every example of the manual page is a policy that is taken. */
static void test_manual(void **state)
{
	char path[512];
	char line[512];
	char example[4096] = "";
	size_t n = 0;
	bool inside = false;
	(void)state;

	snprintf(path, sizeof(path), "%s/man/skillsandbox-policy.5", getenv("SSB_SOURCE"));
	auto_file f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, ".Bd -literal", 12) == 0) {
			inside = true;
			example[0] = '\0';
		} else if (strncmp(line, ".Ed", 3) == 0) {
			policy(example);
			ssb_plan_free(command(NULL, "true"));
			inside = false;
			n++;
		} else if (inside) {
			size_t len = strlen(example);
			snprintf(example + len, sizeof(example) - len, "%s", line);
		}
	}
	policy(NULL);
	assert_int_equal(n, 3);
}

static void test_skill_places(void **state)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	(void)state;

	policy(NULL);
	write_file(at("u/skillsandbox.yaml"), HEAD NOTHING, 0644);
	assert_int_equal(plan_build_skill(&owner, NULL, home, NULL, &p, NULL, &err), 0);
	assert_int_equal(p->n_refusals, 1);
	assert_int_equal(p->n_grants, 0);
	ssb_plan_free(p);
	assert_int_equal(unlink(at("u/skillsandbox.yaml")), 0);

	/* Agents keep skills among their own files: named by the owner, fine. */
	assert_int_equal(mkdir(at("u/.claude"), 0755), 0);
	assert_int_equal(mkdir(at("u/.claude/w"), 0755), 0);
	write_file(at("u/.claude/w/skillsandbox.yaml"), HEAD NOTHING, 0644);
	assert_int_equal(plan_build_skill(&owner, NULL, at("u/.claude/w"), NULL, &p, NULL, &err),
	                 0);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);

	p = NULL;
	assert_int_equal(plan_build_skill(&owner, NULL, at("none"), NULL, &p, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_null(p);

	/* Its own code stays as it is. */
	char text[256];
	snprintf(text, sizeof(text), "permissions: {filesystem: {write: [%s]}}\n", at("skill"));
	p = skill(text, NULL);
	assert_int_equal(p->n_refusals, 1);
	ssb_plan_free(p);
}

static struct ssb_plan *skill_by(const char *entry, const struct flag *flags)
{
	char text[1024];
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	snprintf(text, sizeof(text),
	         NOTHING "skill: {name: s, version: '1'}\nentrypoint: {command: %s}\n", entry);
	write_file(at("skill/skillsandbox.yaml"), text, 0644);
	if (plan_build_skill(&owner, o, at("skill"), NULL, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

static bool asked(const struct ssb_plan *p, const char *item)
{
	for (size_t i = 0; i < p->requested.n; i++) {
		if (strcmp(p->requested.v[i], item) == 0) {
			return true;
		}
	}
	return false;
}

static size_t count_toolchain(const struct ssb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_grants; i++) {
		n += p->grants[i].origin == ORIGIN_TOOLCHAIN ? 1 : 0;
	}
	return n;
}

/* The author of a skill does not choose which directory of the owner's is shown. */
static void test_toolchain_of_a_skill(void **state)
{
	static const struct {
		const char *entry; /* with a slash: in the world */
		bool granted;
	} ROWS[] = {
		{ "tools/bin/snake", false }, { "tools/bin/python3", false }, { "snake", false },
		{ "python3x", false },        { "python.3", false },          { "python3", true },
		{ "python3.12", true },       { "u/proj/mycat", false },      { "node", true },
	};
	static const char *const PROGRAMS[] = { "snake",    "python3",    "python3x",
		                                "python.3", "python3.12", "node" };
	char path[256], item[160];
	char *own_env[] = { path, NULL };
	(void)state;

	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s", at("tools/bin"));
	snprintf(item, sizeof(item), "use the programs in %s", at("tools"));
	owner.environ = own_env;
	for (size_t i = 0; i < ARRAY_LEN(PROGRAMS); i++) {
		char file[64];
		snprintf(file, sizeof(file), "tools/bin/%s", PROGRAMS[i]);
		write_file(at(file), "\177ELF", 0755);
	}
	write_file(at("u/proj/mycat"), "\177ELF", 0755);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		const char *entry = ROWS[i].entry;
		entry = strchr(entry, '/') != NULL ? at(entry) : entry;
		struct ssb_plan *p = skill_by(entry, FLAGS({ SSB_OPT_TOOLCHAIN, "default" }));
		assert_int_equal(count_toolchain(p), ROWS[i].granted ? 1 : 0);
		assert_int_equal(asked(p, item), ROWS[i].granted);
		assert_int_equal(warned(p, "--read"), !ROWS[i].granted);
		ssb_plan_free(p);
		/* As a bare command it is the owner's own word. */
		p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "default" }), entry);
		assert_int_equal(count_toolchain(p), 1);
		assert_false(asked(p, item));
		ssb_plan_free(p);
	}
	/* It asks for the same where nothing is granted, but where the owner said so for good. */
	struct ssb_plan *off = skill_by("python3", NULL);
	assert_int_equal(count_toolchain(off), 0);
	assert_true(asked(off, item) && warned(off, "--toolchain auto"));
	assert_null(strstr(env(off, "PATH"), at("tools")));
	ssb_plan_free(off);
	policy("toolchain: off\n");
	off = skill_by("python3", FLAGS({ SSB_OPT_TOOLCHAIN, "default" }));
	assert_int_equal(count_toolchain(off), 0);
	assert_false(asked(off, item));
	ssb_plan_free(off);
	policy(NULL);
	/* It can be taken out, and the owner can show any directory. */
	struct ssb_plan *p = skill_by(
	        "python3", FLAGS({ SSB_OPT_TOOLCHAIN, "default" }, { SSB_OPT_WITHHOLD, item }));
	assert_int_equal(count_toolchain(p), 0);
	assert_int_equal(p->n_withheld, 1);
	ssb_plan_free(p);
	p = skill_by("snake",
	             FLAGS({ SSB_OPT_TOOLCHAIN, "default" }, { SSB_OPT_READ, at("tools") }));
	assert_int_equal(count_toolchain(p), 0);
	assert_false(warned(p, "--read"));
	assert_non_null(strstr(env(p, "PATH"), at("tools/bin")));
	ssb_plan_free(p);
	owner.environ = environment;
}

/* A limit above the usual is asked for as anything else, and none is more than there is. */
static void test_limits_are_asked(void **state)
{
	static const char BIG[] = NOTHING "resources: {memory_mb: 1048576, max_disk_mb: 1048576, "
	                                  "max_runtime_seconds: 3600, max_processes: 256}\n";
	struct sysinfo machine;
	(void)state;

	policy(NULL);
	assert_int_equal(sysinfo(&machine), 0);
	uint64_t mib = (uint64_t)machine.totalram * machine.mem_unit >> 20;
	assert_true(mib < 1048576); /* else nothing is shown here */
	struct ssb_plan *p = skill(BIG, NULL);
	assert_int_equal(p->requested.n, 3);
	assert_true(asked(p, "limit memory_mb 1048576") && asked(p, "limit max_disk_mb 1048576") &&
	            asked(p, "limit max_runtime_seconds 3600"));
	assert_int_equal(p->res.memory_mb, mib);
	assert_int_equal(p->res.max_disk_mb, mib);
	assert_int_equal(p->res.max_runtime_seconds, 3600);
	assert_true(warned(p, "memory_mb: 1048576 is asked, and the machine has"));
	assert_true(warned(p, "max_disk_mb: 1048576 is asked, and the machine has"));
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

	/* Those of the network count where there is one. */
	p = skill("permissions: {network: {egress: [{domain: a.example}], max_bytes_out: "
	          "2147483648}}\n",
	          NULL);
	assert_true(asked(p, "limit max_bytes_out 2147483648"));
	ssb_plan_free(p);
}

static void test_toolchain(void **state)
{
	char path[256];
	char *own_env[] = { path, NULL };
	(void)state;

	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s:/usr/bin", at("tools/bin"));
	write_file(at("tools/bin/snake"), "\177ELF", 0755);
	owner.environ = own_env;
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "snake");
	assert_int_equal(p->n_grants, 1);
	assert_int_equal(granted(p, at("tools"))->origin, ORIGIN_TOOLCHAIN);
	assert_int_equal(
	        strncmp(env(p, "PATH"), at("tools/bin:/usr"), strlen(at("tools/bin:/usr"))), 0);
	ssb_plan_free(p);

	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "off" }), "snake");
	assert_int_equal(p->n_grants, 0);
	assert_true(warned(p, "--toolchain auto"));
	ssb_plan_free(p);

	policy("toolchain: off\n");
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "default" }), "snake");
	assert_false(p->toolchain_auto);
	ssb_plan_free(p);
	policy("toolchain: auto\n");
	p = command(NULL, "snake");
	assert_true(p->toolchain_auto);
	ssb_plan_free(p);

	/* A program in the home itself does not open the home. */
	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s", home);
	write_file(at("u/snake"), "\177ELF", 0755);
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "snake");
	assert_int_equal(p->n_grants, 0);
	assert_true(warned(p, "--read"));
	ssb_plan_free(p);
	owner.environ = environment;
}

static void test_shims_and_links(void **state)
{
	static const char *const DIRS[] = { "pe",
		                            "pe/shims",
		                            "pe/versions",
		                            "pe/versions/3",
		                            "pe/versions/3/bin",
		                            "pe/versions/3/lib",
		                            "venv",
		                            "venv/bin" };
	char path[256];
	char *own_env[] = { path, NULL };
	(void)state;

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	write_file(at("pe/version"), "3\n", 0644);
	write_file(at("pe/shims/py"), "#!/bin/sh\n", 0755);
	write_file(at("pe/versions/3/bin/py"), "\177ELF", 0755);
	write_file(at("venv/pyvenv.cfg"), "", 0644);
	assert_int_equal(symlink(at("pe/versions/3/bin/py"), at("venv/bin/py")), 0);
	owner.environ = own_env;

	snprintf(path, sizeof(path), "PATH=%s", at("pe/shims"));
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_int_equal(p->n_grants, 1);
	assert_non_null(granted(p, at("pe/versions/3")));
	ssb_plan_free(p);

	/* A venv needs its own files and those of its interpreter. */
	snprintf(path, sizeof(path), "PATH=%s", at("venv/bin"));
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_int_equal(p->n_grants, 2);
	assert_non_null(granted(p, at("pe/versions/3")));
	assert_non_null(granted(p, at("venv")));
	ssb_plan_free(p);

	/* A version file that points elsewhere is not followed. */
	write_file(at("pe/version"), "../../../u\n", 0644);
	snprintf(path, sizeof(path), "PATH=%s", at("pe/shims"));
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_null(granted(p, at("u")));
	ssb_plan_free(p);
	owner.environ = environment;
}

static void test_workdir(void **state)
{
	char old[512];
	(void)state;

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
	(void)state;

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
	/* Values are nobody's business. */
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
	(void)state;

	policy(NULL);
	for (size_t i = 0; i <= MAX_ARGS; i++) {
		argv[i] = (char *)(uintptr_t) "x";
	}
	assert_int_equal(plan_build_command(&owner, NULL, argv, &p, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	argv[MAX_ARGS] = NULL;
	assert_int_equal(plan_build_command(&owner, NULL, argv, &p, NULL, &err), 0);
	ssb_plan_free(p);
	argv[0] = NULL;
	err = (struct ssb_error){ 0 };
	assert_int_equal(plan_build_command(&owner, NULL, argv, &p, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	free(argv);
}

static void test_owner_home(void **state)
{
	struct owner o = { 0 };
	struct ssb_error err = { 0 };
	(void)state;

	assert_int_equal(setenv("HOME", at("u/link"), 1), 0);
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", "/x/cfg", 1), 0);
	assert_int_equal(owner_load(&o, &err), 0);
	assert_string_equal(o.home, at("u/notes")); /* without the symlink */
	assert_string_equal(o.config_dir, "/x/cfg/skillsandbox");
	assert_string_equal(o.state_dir, at("u/notes/.local/state/skillsandbox"));
	owner_done(&o);
	assert_int_equal(setenv("HOME", "not/absolute", 1), 0);
	assert_int_equal(owner_load(&o, &err), 0);
	assert_int_equal(o.home[0], '/');
	owner_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bare_command),
		cmocka_unit_test(test_skill_and_order),
		cmocka_unit_test(test_nested_grants),
		cmocka_unit_test(test_dangerous_requests),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_owner_grants),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_kernel_and_devices),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cannot_be_granted),
		cmocka_unit_test(test_create_missing),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_credentials),
		cmocka_unit_test(test_withhold),
		cmocka_unit_test(test_consent_policy),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_profile),
		cmocka_unit_test(test_policy_grants_and_denials),
		cmocka_unit_test(test_policy_errors),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_skill_places),
		cmocka_unit_test(test_toolchain),
		cmocka_unit_test(test_toolchain_of_a_skill),
		cmocka_unit_test(test_limits_are_asked),
		cmocka_unit_test(test_shims_and_links),
		cmocka_unit_test(test_workdir),
		cmocka_unit_test(test_explained),
		cmocka_unit_test(test_argument_bounds),
		cmocka_unit_test(test_owner_home),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
