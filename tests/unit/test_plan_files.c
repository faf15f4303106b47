/* test_plan_files.c - files in a plan: which are granted, refused or created. */
#include "plan_world.h"

#include "sandbox/prepared.h"

static void test_nested_grants(void **state)
{
	policy(NULL);
	struct ssb_plan *p = command(
	        FLAGS({ SSB_OPT_WRITE, at("u/proj") }, { SSB_OPT_WRITE, at("u/proj/.git/hooks") },
	              { SSB_OPT_READ, at("u/notes") }, { SSB_OPT_WRITE, at("u/notes/deep") },
	              { SSB_OPT_READ, at("u/notes") }),
	        "true");
	/* The protected name in ~/proj has a separate grant, and so does the directory
	 * ~/notes/deep: it is writable, and ~/notes can only be read. */
	assert_int_equal(p->n_grants, 4);
	assert_string_equal(p->grants[0].path, at("u/notes"));
	assert_string_equal(p->grants[1].path, at("u/notes/deep"));
	assert_string_equal(p->grants[2].path, at("u/proj"));
	assert_string_equal(p->grants[3].path, at("u/proj/.git/hooks"));
	ssb_plan_free(p);
}

/* Whatever characters a path in a manifest has, it must be one word in the remedy's command, and
 * one string in its line for the policy file. */
static void test_remedies_quote(void **state)
{
	static const char *const ASKED[] = { "read ~/.ssh/a; touch b", "read ~/.ssh/x], write: [~",
		                             "read ~/.ssh/it's", "write ~/$(touch c)/.vscode" };
	static const char *const SAID[] = {
		"--read ~/'.ssh/a; touch b', or the line 'grants: {read: [\"~/.ssh/a; touch b\"]}'",
		"--read ~/'.ssh/x], write: [~', or the line 'grants: {read: [\"~/.ssh/x], write: "
		"[~\"]}'",
		"--read ~/'.ssh/it'\\''s', or the line 'grants: {read: [\"~/.ssh/it's\"]}'",
		"--write ~/'$(touch c)/.vscode'",
	};
	policy(NULL);
	struct ssb_plan *p =
	        skill(FILES("read: ['~/.ssh/a; touch b', '~/.ssh/x], write: [~', \"~/.ssh/it's\"], "
	                    "write: ['~/$(touch c)/.vscode']"),
	              NULL);
	for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
		const struct refusal *r = refused(p, ASKED[i]);
		assert_non_null(r);
		if (strstr(r->remedy, SAID[i]) == NULL) {
			fail_msg("%s", r->remedy);
		}
	}
	ssb_plan_free(p);
}

static void test_dangerous_requests(void **state)
{
	static const char *const REFUSED[] = { "read ~",
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
		                               "write ~/new/.vscode" };
	policy(NULL);
	struct ssb_plan *p = skill(
	        FILES("read: ['~/', ~/.ssh, ~/.aws/credentials, /, /proc, /etc/shadow, /run, "
	              "~/link/deep, ~/notes], write: [~/.config, ~/.bashrc, /etc/x, /usr/local/x, "
	              "~/proj/.git, ~/proj/.git/hooks, ~/new/.vscode]"),
	        NULL);
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
	/* The control: the request without a problem is granted, and no other one. */
	assert_non_null(granted(p, at("u/notes")));
	assert_int_equal(p->n_grants, 2);
	ssb_plan_free(p);
}

/* Paths that agents, shells, logins, editors and other programs of the owner execute or apply, and
 * other places of keys, are refused by their names alone: none of them has to exist. */
static void test_dangerous_names(void **state)
{
	static const struct {
		const char *access, *path;
	} ROWS[] = {
		{ "read", "~/.openclaw/openclaw.json" },
		{ "write", "~/.openclaw" },
		{ "read", "~/.local/share/opencode/auth.json" },
		{ "read", "~/.config/github-copilot" },
		{ "read", "~/.envrc" },
		{ "read", "~/.terraformrc" },
		{ "read", "~/.databrickscfg" },
		{ "read", "~/.config/composer/auth.json" },
		{ "read", "~/.librewolf" },
		{ "read", "~/.weechat" },
		{ "read", "/etc/openvpn" },
		{ "read", "/etc/kubernetes/admin.conf" },
		{ "read", "/var/lib/systemd/credential.secret" },
		{ "write", "/var/lib/dpkg/info" },
		{ "write", "~/.local/share/systemd/user" },
		{ "write", "~/.config/plasma-workspace/env" },
		{ "write", "~/.config/sway" },
		{ "write", "~/.config/zsh" },
		{ "write", "~/.oh-my-zsh/custom" },
		{ "write", "~/.config/emacs" },
		{ "write", "~/.vscode-server" },
		{ "write", "~/.local/share/nvim" },
		{ "write", "~/.local/share/direnv/allow" },
		{ "write", "~/.npm-global" },
		{ "write", "~/.asdf/shims" },
		{ "write", "~/.ipython/profile_default/startup" },
		{ "write", "~/.curlrc" },
		{ "write", "~/.config/jj" },
		{ "write", "~/.cache/pre-commit" },
		{ "write", "~/.local/share/bash-completion/completions" },
		{ "write", "~/.config/xonsh" },
		{ "write", "~/.config/openbox" },
		{ "write", "~/.config/helix" },
		{ "write", "~/.volta/bin" },
		{ "write", "~/.cabal" },
		{ "write", "~/.gradle/init.d" },
		{ "write", "~/.config/ghostty" },
		{ "write", "~/.rhosts" },
	};
	char request[MAX_PATH_BYTES + 32];

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		snprintf(request, sizeof(request), "permissions: {filesystem: {%s: [%s]}}\n",
		         ROWS[i].access, ROWS[i].path);
		struct ssb_plan *p = skill(request, NULL);
		snprintf(request, sizeof(request), "%s %s", ROWS[i].access, ROWS[i].path);
		if (refused(p, request) == NULL) {
			fail_msg("'%s' was not refused", request);
		}
		ssb_plan_free(p);
	}
}

/* A refusal has an option only if this option would change the refusal into a grant. For a path
 * through a symlink there is no option, because the path in the manifest would still be refused. */
static void test_offers(void **state)
{
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
		assert_non_null(strstr(r->remedy, "declare the real path"));
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
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(granted(p, at("u/.ssh"))->origin, ORIGIN_FLAG);
	assert_true(warned(p, "SSH keys"));
	ssb_plan_free(p);

	/* A grant to read does not allow writing. */
	p = skill(FILES("write: [~/.ssh]"), FLAGS({ SSB_OPT_READ, "~/.ssh" }));
	assert_non_null(refused(p, "write ~/.ssh"));
	ssb_plan_free(p);

	/* The owner may grant a path that is a symlink. */
	p = command(FLAGS({ SSB_OPT_READ, "~/link" }), "true");
	assert_non_null(granted(p, at("u/notes")));
	ssb_plan_free(p);

	p = command(FLAGS({ SSB_OPT_READ, "~/" }), "true");
	assert_int_equal(p->n_refusals, 0);
	assert_true(warned(p, ".ssh"));
	ssb_plan_free(p);
}

/* The owner grants a path that is a symlink. If the symlink leads to a dangerous place, that place
 * is granted only if the owner's path by itself names that place, too. Naming one dangerous place
 * does not grant another one. */
static void test_owner_symlinks(void **state)
{
	static const struct {
		const char *link;
		const char *to;
		enum ssb_option option;
		bool granted;
	} ROWS[] = {
		{ "u/proj/out", "../.ssh", SSB_OPT_WRITE, false },
		{ "u/bin/out", "../.ssh", SSB_OPT_WRITE, false },
		{ "u/bin/out", "../.ssh/keys", SSB_OPT_WRITE, false },
		{ "u/bin/out", "../.config/gh", SSB_OPT_WRITE, false },
		{ "u/.config/gh", "..", SSB_OPT_READ, false },
		{ "u/bin/out", "../bin", SSB_OPT_WRITE, true },
		{ "u/bin/out", "../notes", SSB_OPT_WRITE, true },
		{ "u/.aws", "notes/deep", SSB_OPT_READ, true },
		{ "u/private", "notes/deep", SSB_OPT_READ, true },
		{ "u/notes/out", "../proj/.git/hooks", SSB_OPT_WRITE, false },
		{ "u/notes/out", "../proj/.git/hooks", SSB_OPT_READ, true },
		{ "u/notes/.git", "../proj/.git", SSB_OPT_WRITE, true },
		{ "u/notes/out", "../.tool", SSB_OPT_READ, false },
		{ "u/notes/out", "../.config/tool", SSB_OPT_WRITE, false },
		{ "u/.toolrc", ".tool/rc", SSB_OPT_READ, true },
		{ "u/.config/own", "../.tool", SSB_OPT_READ, true },
		{ "u/.config/tool/out", "../../.tool", SSB_OPT_READ, false },
		{ "u/.config/tool/out", "../tool", SSB_OPT_READ, true },
	};
	policy("deny: {read: [~/private]}\n");
	assert_int_equal(mkdir(at("u/bin"), 0755), 0);
	assert_int_equal(mkdir(at("u/.tool"), 0755), 0);
	assert_int_equal(mkdir(at("u/.config/tool"), 0755), 0);
	write_file(at("u/.tool/rc"), "", 0644);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_int_equal(symlink(ROWS[i].to, at(ROWS[i].link)), 0);
		struct ssb_plan *p = command(FLAGS({ ROWS[i].option, at(ROWS[i].link) }), "true");
		if ((p->n_refusals == 0) != ROWS[i].granted) {
			fail_msg("%s -> %s", ROWS[i].link, ROWS[i].to);
		}
		ssb_plan_free(p);
		assert_int_equal(unlink(at(ROWS[i].link)), 0);
	}
	assert_int_equal(rmdir(at("u/bin")), 0);
	assert_int_equal(rmdir(at("u/.config/tool")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/.tool")), 0);
}

/* If the policy file grants a directory, a manifest may request the places beneath it. But files
 * that programs of the host execute or apply must be in the policy file themselves. */
static void test_policy_names_what_is_protected(void **state)
{
	static const struct {
		const char *policy;
		const char *asked;
		bool granted;
	} ROWS[] = {
		{ "grants: {write: [~/proj]}\n", "write ~/proj", true },
		{ "grants: {write: [~/proj]}\n", "write ~/proj/src", true },
		{ "grants: {write: [~/proj]}\n", "write ~/proj/.git/hooks", false },
		{ "grants: {write: [~/proj]}\n", "write ~/proj/.git", false },
		{ "grants: {write: [~/proj]}\n", "write ~/proj/.vscode", false },
		{ "grants: {write: [~/]}\n", "write ~/proj/.git/hooks", false },
		{ "grants: {write: [~/proj]}\n", "read ~/proj/.git/hooks", true },
		{ "grants: {write: [~/proj/.git/hooks]}\n", "write ~/proj/.git/hooks", true },
		{ "grants: {write: [~/proj, ~/proj/.git]}\n", "write ~/proj/.git/hooks", true },
		{ "grants: {write: [~/proj/.git, ~/proj]}\n", "write ~/proj/.git/hooks", true },
	};
	char text[128];
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		const char *path = strchr(ROWS[i].asked, ' ') + 1;
		policy(ROWS[i].policy);
		snprintf(text, sizeof(text), FILES("%.*s: ['%s']"), (int)(path - 1 - ROWS[i].asked),
		         ROWS[i].asked, path);
		struct ssb_plan *p = skill(text, NULL);
		const struct refusal *r = refused(p, ROWS[i].asked);
		if ((r == NULL) != ROWS[i].granted) {
			fail_msg("%s%s: %s", ROWS[i].policy, ROWS[i].asked,
			         r != NULL ? r->why : "granted");
		}
		assert_true(r == NULL || strstr(r->remedy, "--write") != NULL);
		ssb_plan_free(p);
	}
	policy(NULL);
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
	for (size_t i = 0; i < ARRAY_LEN(NEVER); i++) {
		struct ssb_plan *p = command(FLAGS(NEVER[i]), "true");
		assert_int_equal(p->n_refusals, 1);
		assert_int_equal(p->n_grants, 0);
		ssb_plan_free(p);
	}
	/* Refused for writing: the runtime's records, whether they exist or not, and the directory
	 * that contains them. */
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
	assert_int_equal(p->n_refusals, 0);
	assert_true(p->n_grants > 3);
	assert_true(warned(p, "whole machine"));
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		assert_true(g->of_whole && g->access == ACCESS_READ);
		/* No grant is one of the directories that the sandbox makes itself, is in one, or
		 * contains one. */
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
	assert_non_null(refused(p, "read ~/fifo"));
	assert_non_null(refused(p, "read /skill/x"));
	assert_true(warned(p, "~/notes/absent"));
	assert_int_equal(p->n_refusals, 2);
	assert_int_equal(p->n_grants, 1); /* no grant for the path that every sandbox shows */
	ssb_plan_free(p);
}

static void test_create_missing(void **state)
{
	struct prepared made = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	policy(NULL);
	struct ssb_plan *p = skill(FILES("write: [~/out/a/b, ~/out/c], read: [~/out/c]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	const struct grant *g = granted(p, at("u/out/a/b"));
	assert_true(g->create && g->fd == -1 && g->parent_fd >= 0);
	assert_string_equal(g->missing, "out/a/b");
	assert_int_equal(stat(at("u/out"), &st), -1); /* planning changes nothing */
	assert_ptr_equal(prepared_grants(NULL, p), p->grants);
	assert_int_equal(prepared_make(p, &made, &err), 0);
	assert_int_equal(stat(at("u/out/a/b"), &st), 0);
	assert_int_equal(g->fd, -1); /* the plan itself has not changed */
	g = &prepared_grants(&made, p)[g - p->grants];
	assert_true(g->fd >= 0 && g->dev == st.st_dev && g->ino == st.st_ino);
	assert_int_equal(stat(at("u/out/c"), &st), 0);
	prepared_done(&made);
	ssb_plan_free(p);

	/* A symlink that appears after planning is not followed. */
	p = skill(FILES("write: [~/later]"), NULL);
	assert_int_equal(symlink("notes", at("u/later")), 0);
	assert_int_equal(prepared_make(p, &made, &err), -1);
	prepared_done(&made);
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_grants),
		cmocka_unit_test(test_remedies_quote),
		cmocka_unit_test(test_dangerous_requests),
		cmocka_unit_test(test_dangerous_names),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_owner_grants),
		cmocka_unit_test(test_owner_symlinks),
		cmocka_unit_test(test_policy_names_what_is_protected),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_kernel_and_devices),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cannot_be_granted),
		cmocka_unit_test(test_create_missing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
