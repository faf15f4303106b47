/* test_plan_files.c - files in a plan: what is granted, refused or made, and the directories of the
 * programs that run. */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>

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
	(void)state;

	/* A protected name is granted beside its parent; a write in a read too. */
	assert_int_equal(p->n_grants, 4);
	assert_string_equal(p->grants[0].path, at("u/notes"));
	assert_string_equal(p->grants[1].path, at("u/notes/deep"));
	assert_string_equal(p->grants[2].path, at("u/proj"));
	assert_string_equal(p->grants[3].path, at("u/proj/.git/hooks"));
	ssb_plan_free(p);
}

/* What the owner is told to write is one word of a shell and one text of the policy file,
 * whatever the manifest calls the place. */
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
	(void)state;

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

/* What agents, shells, logins, editors and programs of the owner obey, and where more keys are
 * kept: by its name alone, since nothing of it has to be there. */
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

	(void)state;
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

/* What a symlink leads to is granted where the owner's words name it: one dangerous place is
 * no word for another. */
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
	(void)state;

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

/* Whatever program it belongs to: hidden names of the home need the owner's word. */
static void test_hidden_names(void **state)
{
	static const char *const PATHS[] = {
		"~/.anything",     "~/.anything/below", "~/.config/unknown/x", "~/.config",
		"~/.cache",        "~/.cache/unknown",  "~/.local/share/a/b",  "~/.local",
		"~/.local/state",  "~/..odd",           "~/.cargo/env",        "~/.cargo/registry",
		"~/.config/mpv/s", "~/.ollama",         "~/.config/s.d",
	};
	static const char *const ACCESS[] = { "read", "write" };
	char text[128], what[128], file[128];
	(void)state;

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(PATHS) * 2; i++) {
		const char *path = PATHS[i / 2];
		snprintf(text, sizeof(text), FILES("%s: ['%s']"), ACCESS[i % 2], path);
		snprintf(what, sizeof(what), "%s %s", ACCESS[i % 2], path);
		struct ssb_plan *p = skill(text, NULL);
		const struct refusal *r = refused(p, what);
		if (r == NULL || r->value == NULL || strstr(r->remedy, path) == NULL) {
			fail_msg("%s: %s", what, r != NULL ? r->remedy : "granted");
		}
		ssb_plan_free(p);
		/* The owner's word gives it: the policy file's, and a flag's. */
		snprintf(file, sizeof(file), "grants: {%s: ['%s']}\n", ACCESS[i % 2], path);
		policy(file);
		p = skill(text, NULL);
		assert_int_equal(p->n_refusals, 0);
		ssb_plan_free(p);
		policy(NULL);
		p = skill(text, FLAGS({ SSB_OPT_WRITE, path }));
		assert_int_equal(p->n_refusals, 0);
		ssb_plan_free(p);
	}
	/* Not at the top of the home it is a name like any other. */
	struct ssb_plan *p = skill(FILES("read: [~/proj/.env], write: [~/proj/.data]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
}

/* An entry of the policy file lets a manifest have what is in it, but what the host executes or
 * obeys there has to be named itself. */
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
	(void)state;

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

/* Started by root: what the modes on the way close to others needs the owner's word. */
static void test_closed_to_others(void **state)
{
	static const struct {
		const char *dir;
		mode_t dir_mode;
		mode_t file_mode;
		const char *path;
		bool granted;
	} ROWS[] = {
		{ "other/d", 0755, 0644, "other/d", true },
		{ "other/d", 0755, 0600, "other/d", true }, /* the kernel keeps the file closed */
		{ "other/d", 0755, 0640, "other/d/f", false },
		{ "other/d", 0711, 0644, "other/d/f", true },
		{ "other/d", 0711, 0644, "other/d", false },
		{ "other/d", 0744, 0644, "other/d", false },
		{ "other/d", 0700, 0644, "other/d/f", false },
		{ "u/d", 0700, 0644, "u/d/f", false },
		{ "u/d", 0755, 0600, "u/d/f", false },
		{ "u/d", 0755, 0644, "u/d/f", true },
	};
	static const char *const ACCESS[] = { "read", "write" };
	char text[256], what[256], file[256];
	const uid_t before = owner.uid;
	(void)state;

	policy(NULL);
	assert_int_equal(chmod(home, 0700), 0); /* the home's own mode does not count */
	for (size_t i = 0; i < ARRAY_LEN(ROWS) * 2; i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s", at(ROWS[i / 2].path));
		const char *access = ACCESS[i % 2];
		snprintf(file, sizeof(file), "%s/f", ROWS[i / 2].dir);
		assert_int_equal(mkdir(at(ROWS[i / 2].dir), 0700), 0);
		write_file(at(file), "", ROWS[i / 2].file_mode);
		assert_int_equal(chmod(at(ROWS[i / 2].dir), ROWS[i / 2].dir_mode), 0);
		snprintf(text, sizeof(text), FILES("%s: ['%s']"), access, path);
		snprintf(what, sizeof(what), "%s %s", access, path);
		owner.uid = 0;
		struct ssb_plan *p = skill(text, NULL);
		const struct refusal *r = refused(p, what);
		if ((p->n_refusals == 0) != ROWS[i / 2].granted ||
		    (r != NULL && (strstr(r->why, "closed to others") == NULL ||
		                   strstr(r->remedy, path) == NULL || r->value == NULL))) {
			fail_msg("%zu: %s: %s", i / 2, what, r != NULL ? r->why : "granted");
		}
		assert_true(r != NULL || granted(p, path)->unasked == (i % 2 == 0));
		ssb_plan_free(p);
		/* Each word of the owner's gives it, with the owner's rights. */
		p = skill(text, FLAGS({ i % 2 == 0 ? SSB_OPT_READ : SSB_OPT_WRITE, path }));
		assert_true(p->n_refusals == 0 && !granted(p, path)->unasked);
		ssb_plan_free(p);
		snprintf(file, sizeof(file), "grants: {%s: ['%s']}\n", access, path);
		policy(file);
		p = skill(text, NULL);
		assert_true(p->n_refusals == 0 && !granted(p, path)->unasked);
		ssb_plan_free(p);
		policy(NULL);
		owner.uid = 1000; /* whose own rights the kernel checks */
		p = skill(text, NULL);
		assert_int_equal(p->n_refusals, 0);
		ssb_plan_free(p);
		owner.uid = before;
		assert_int_equal(tree_remove(AT_FDCWD, at(ROWS[i / 2].dir)), 0);
	}
	assert_int_equal(chmod(home, 0755), 0);
}

/* What the owner named in what a manifest reads unasked stays a grant of its own. */
static void test_named_in_what_is_unasked(void **state)
{
	char text[256];
	(void)state;

	policy(NULL);
	snprintf(text, sizeof(text), FILES("read: ['%s']"), at("tools"));
	struct ssb_plan *p = skill(text, FLAGS({ SSB_OPT_READ, at("tools/bin") }));
	assert_true(granted(p, at("tools"))->unasked && !granted(p, at("tools/bin"))->unasked);
	ssb_plan_free(p);
}

static struct ssb_plan *skill_named(const char *name, const char *rest)
{
	char text[1024];
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	snprintf(text, sizeof(text),
	         "skill: {name: '%s', version: '1'}\nentrypoint: {command: sh}\n%s", name, rest);
	write_file(at("skill/skillsandbox.yaml"), text, 0644);
	assert_int_equal(
	        plan_decide(&(struct plan_request){ .owner = &owner, .skill = at("skill") }, &p,
	                    NULL, &err),
	        0);
	return p;
}

/* The directory of a skill's own name is its own, unless the name is another's. */
static void test_own_names(void **state)
{
	static const struct {
		const char *name;
		const char *path;
		bool granted;
	} ROWS[] = {
		{ "ssbtown", "~/.config/ssbtown", true },
		{ "ssbtown", "~/.cache/ssbtown/deep", true },
		{ "ssbtown", "~/.config/ssbtown2", false },
		{ "ssbtown", "~/.config", false },
		{ "ssbtown", "~/.ssbtown", false },
		{ "ssbtown", "~/.local/share/ssbtown", false },
		{ "Ssbtown", "~/.config/Ssbtown", false },
		{ "ssb.town", "~/.config/ssb.town", false },
		{ "mpv", "~/.config/mpv", false },
		{ "autostart", "~/.config/autostart", false },
		{ "systemd", "~/.config/systemd", false },
		{ "pip", "~/.cache/pip", false },
		{ "git", "~/.config/git", false },
		{ "gcloud", "~/.config/gcloud", false },
		{ "starship", "~/.config/starship", false },
		{ "code", "~/.config/code", false },
		{ "sh", "~/.config/sh", false }, /* a program of the system's */
		{ "gh", "~/.cache/gh", false },
		{ "vulkan", "~/.config/vulkan", false }, /* libraries of the owner's programs */
		{ "pulse", "~/.cache/pulse", false },
		{ "go-build", "~/.cache/go-build", false },
		{ "nixpkgs", "~/.config/nixpkgs", false },
		{ "river", "~/.config/river", false },
		{ "labwc", "~/.config/labwc", false },
		{ "uwsm", "~/.config/uwsm", false },
		{ "irb", "~/.config/irb", false },
		{ "chezmoi", "~/.config/chezmoi", false },
	};
	char text[128];
	(void)state;

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		snprintf(text, sizeof(text), FILES("write: ['%s']"), ROWS[i].path);
		struct ssb_plan *p = skill_named(ROWS[i].name, text);
		if ((p->n_refusals == 0) != ROWS[i].granted) {
			fail_msg("%s: %s", ROWS[i].name, ROWS[i].path);
		}
		ssb_plan_free(p);
	}
}

static const char OWN_DIR[] = FILES("write: [~/.config/ssbtown]");

/* Why the skill does not get its own directory; "": it does. */
static const char *why_not_own(void)
{
	static char why[256];
	struct ssb_plan *p = skill_named("ssbtown", OWN_DIR);
	const struct refusal *r = refused(p, "write ~/.config/ssbtown");

	snprintf(why, sizeof(why), "%s", r != NULL ? r->why : "");
	ssb_plan_free(p);
	return why;
}

static void make_own(void)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = skill_named("ssbtown", OWN_DIR);

	assert_int_equal(p->n_refusals, 0);
	AUTO(prepared_done) struct prepared made = { 0 };
	assert_int_equal(prepared_make(p, &made, &err), 0);
	ssb_plan_free(p);
}

/* In nanoseconds; 0: the file system does not tell it. */
static long long born(const char *path)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BTIME, &st), 0);
	return (st.stx_mask & STATX_BTIME) == 0
	               ? 0
	               : st.stx_btime.tv_sec * 1000000000LL + st.stx_btime.tv_nsec;
}

/* A directory that was there is another program's, whatever is written on it; one that a run made
 * is the skill's, until it is removed. */
static void test_own_directory(void **state)
{
	const char *const dir = strdup(at("u/.config/ssbtown"));
	const char *const mark = strdup(at("skill"));
	(void)state;

	policy(NULL);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_non_null(strstr(why_not_own(), "existed before"));
	/* A skill that may write there can set any attribute. */
	if (setxattr(dir, "user.skillsandbox.skill", mark, strlen(mark), 0) != 0) {
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_non_null(strstr(why_not_own(), "existed before"));
	assert_int_equal(rmdir(dir), 0);
	make_own();
	assert_int_equal(why_not_own()[0] == '\0', born(dir) != 0);
	/* Another program makes it anew, often with the same inode, a tick of the clock later. */
	long long before = born(dir);
	do {
		assert_int_equal(rmdir(dir), 0);
		assert_int_equal(mkdir(dir, 0755), 0);
	} while (before != 0 && born(dir) == before);
	assert_non_null(strstr(why_not_own(), "existed before"));
	assert_int_equal(rmdir(dir), 0);
	free((void *)(uintptr_t)dir);
	free((void *)(uintptr_t)mark);
}

/* Replaces `from` with `to`, of the same length, in the list. */
static void change_list(const char *list, const char *from, const char *to)
{
	char text[MAX_PATH_BYTES];
	int fd = open(list, O_RDWR | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text));

	assert_true(n > 0);
	char *at_from = memmem(text, (size_t)n, from, strlen(from));
	assert_non_null(at_from);
	memcpy(at_from, to, strlen(from));
	assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
	assert_int_equal(close(fd), 0);
}

/* Only a list that is the owner's alone counts, and each row for its one skill. */
static void test_own_directory_list(void **state)
{
	const char *const list = strdup(at("state/own-directories"));
	struct stat st;
	(void)state;

	policy(NULL);
	assert_true(unlink(list) == 0 || errno == ENOENT);
	make_own();
	if (born(at("u/.config/ssbtown")) == 0) {
		skip();
	}
	assert_string_equal(why_not_own(), "");
	change_list(list, "/skill", "/other");
	assert_non_null(strstr(why_not_own(), "existed before"));
	change_list(list, "/other", "/skill");
	assert_string_equal(why_not_own(), "");
	assert_int_equal(chmod(list, 0622), 0);
	assert_non_null(strstr(why_not_own(), "cannot be read"));
	assert_int_equal(chmod(list, 0600), 0);
	assert_int_equal(truncate(list, (off_t)MAX_KNOWN_BYTES + 1), 0);
	assert_non_null(strstr(why_not_own(), "cannot be read"));
	/* Full of rows that are gone: they make room for the next one. */
	assert_int_equal(rmdir(at("u/.config/ssbtown")), 0);
	assert_int_equal(truncate(list, (off_t)MAX_KNOWN_BYTES), 0);
	make_own();
	assert_string_equal(why_not_own(), "");
	assert_true(stat(list, &st) == 0 && st.st_size < MAX_PATH_BYTES);
	assert_int_equal(unlink(list), 0);
	assert_non_null(strstr(why_not_own(), "existed before"));
	assert_int_equal(rmdir(at("u/.config/ssbtown")), 0);
	free((void *)(uintptr_t)list);
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
	struct prepared made = { 0 };
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
	assert_ptr_equal(prepared_grants(NULL, p), p->grants);
	assert_int_equal(prepared_make(p, &made, &err), 0);
	assert_int_equal(stat(at("u/out/a/b"), &st), 0);
	assert_int_equal(g->fd, -1); /* the plan stays as it is */
	g = &prepared_grants(&made, p)[g - p->grants];
	assert_true(g->fd >= 0 && g->dev == st.st_dev && g->ino == st.st_ino);
	assert_int_equal(stat(at("u/out/c"), &st), 0);
	prepared_done(&made);
	ssb_plan_free(p);

	/* A symlink put there meanwhile is not followed. */
	p = skill(FILES("write: [~/later]"), NULL);
	assert_int_equal(symlink("notes", at("u/later")), 0);
	assert_int_equal(prepared_make(p, &made, &err), -1);
	prepared_done(&made);
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
	if (plan_decide(
	            &(struct plan_request){ .owner = &owner, .options = o, .skill = at("skill") },
	            &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
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
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_policy_names_what_is_protected),
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_own_directory),
		cmocka_unit_test(test_own_directory_list),
		cmocka_unit_test(test_closed_to_others),
		cmocka_unit_test(test_named_in_what_is_unasked),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_kernel_and_devices),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cannot_be_granted),
		cmocka_unit_test(test_create_missing),
		cmocka_unit_test(test_toolchain),
		cmocka_unit_test(test_toolchain_of_a_skill),
		cmocka_unit_test(test_shims_and_links),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
