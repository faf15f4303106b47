/* test_plan_hidden.c - places that are in no table and that a manifest gets only if the owner names
 * them: hidden names of the home, the skill's own directory in the home, and files that are closed
 * to other users. */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "plan_world.h"

#include "sandbox/prepared.h"

/* A request for a hidden name of the home (".NAME") is refused unless the owner names it, whatever
 * program it belongs to. */
static void test_hidden_names(void **state)
{
	static const char *const PATHS[] = {
		"~/.anything",
		"~/.anything/below",
		"~/.config/unknown/x",
		"~/.config",
		"~/.cache",
		"~/.cache/unknown",
		"~/.local/share/a/b",
		"~/.local",
		"~/.local/state",
		"~/..odd",
		"~/.cargo/env",
		"~/.cargo/registry",
		"~/.config/mpv/s",
		"~/.ollama",
		"~/.config/s.d",
		"~/.p10k.zsh",
		"~/.fzf.bash",
		"~/.cloudflared",
		"~/.sentryclirc",
		"~/.bundle/config",
		"~/.pulumi",
		"~/.jupyter",
		"~/.config/pypoetry",
		"~/.config/syncthing",
	};
	static const char *const ACCESS[] = { "read", "write" };
	char text[128], what[128], file[128];

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
		/* The policy file can grant it, and so can a flag. */
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
	/* Below the top of the home, a hidden name is treated like any other. */
	struct ssb_plan *p = skill(FILES("read: [~/proj/.env], write: [~/proj/.data]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
}

/* If root starts the run, a manifest may request only paths that other users can access, too. If
 * the mode of the path, or of a directory above it, forbids that, the request is refused unless the
 * owner names the path. */
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
		{ "other/d", 0755, 0600, "other/d", true }, /* the kernel will not open the file */
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

	policy(NULL);
	assert_int_equal(chmod(home, 0700), 0); /* the mode of the home itself does not matter */
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
		    (r != NULL && (strstr(r->why, "closed to other users") == NULL ||
		                   strstr(r->remedy, path) == NULL || r->value == NULL))) {
			fail_msg("%zu: %s: %s", i / 2, what, r != NULL ? r->why : "granted");
		}
		assert_true(r != NULL || granted(p, path)->unasked == (i % 2 == 0));
		ssb_plan_free(p);
		/* A flag grants it, and so does the policy file, with the owner's permissions. */
		p = skill(text, FLAGS({ i % 2 == 0 ? SSB_OPT_READ : SSB_OPT_WRITE, path }));
		assert_true(p->n_refusals == 0 && !granted(p, path)->unasked);
		ssb_plan_free(p);
		snprintf(file, sizeof(file), "grants: {%s: ['%s']}\n", access, path);
		policy(file);
		p = skill(text, NULL);
		assert_true(p->n_refusals == 0 && !granted(p, path)->unasked);
		ssb_plan_free(p);
		policy(NULL);
		owner.uid = 1000; /* not root: the kernel checks the permissions */
		p = skill(text, NULL);
		assert_int_equal(p->n_refusals, 0);
		ssb_plan_free(p);
		owner.uid = before;
		assert_int_equal(tree_remove(AT_FDCWD, at(ROWS[i / 2].dir)), 0);
	}
	assert_int_equal(chmod(home, 0755), 0);
}

/* If a place that the owner named is inside of a place that only the manifest requests, it keeps
 * its own grant. */
static void test_named_in_what_is_unasked(void **state)
{
	char text[256];

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

/* A skill may use the directories in the home with its own name (such as ~/.config/NAME), unless
 * another program has that name. */
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
		{ "sh", "~/.config/sh", false }, /* the name of a system program */
		{ "gh", "~/.cache/gh", false },
		/* names of libraries that programs of the owner load */
		{ "vulkan", "~/.config/vulkan", false },
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

/* Returns the reason why the skill ssbtown does not get ~/.config/ssbtown; "" if it gets it. */
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

/* Returns the birth time of the directory in nanoseconds; 0 if the file system does not store
 * it. */
static long long born(const char *path)
{
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BTIME, &st), 0);
	return (st.stx_mask & STATX_BTIME) == 0
	               ? 0
	               : st.stx_btime.tv_sec * 1000000000LL + st.stx_btime.tv_nsec;
}

/* A directory that existed before the skill's first run belongs to another program, whatever
 * extended attributes it has. A directory that a run made belongs to the skill until the directory
 * is removed. */
static void test_own_directory(void **state)
{
	const char *const dir = strdup(at("u/.config/ssbtown"));
	const char *const mark = strdup(at("skill"));

	policy(NULL);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_non_null(strstr(why_not_own(), "existed before"));
	/* Extended attributes do not count, because any skill that may write there could set
	 * them. */
	if (setxattr(dir, "user.skillsandbox.skill", mark, strlen(mark), 0) != 0) {
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_non_null(strstr(why_not_own(), "existed before"));
	assert_int_equal(rmdir(dir), 0);
	make_own();
	assert_int_equal(why_not_own()[0] == '\0', born(dir) != 0);
	/* The directory is removed, and another program makes a new one, often with the same inode,
	 * one tick of the clock later. */
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

/* Replaces the text `from` by `to` in the file `list`; both have the same length. */
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

/* The list of directories that runs have made counts only if the owner alone can write to it. Each
 * of its rows is for one skill. */
static void test_own_directory_list(void **state)
{
	const char *const list = strdup(at("state/own-directories"));
	struct stat st;

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
	/* The list is full of rows whose directories are gone: a new row replaces them. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_own_directory),
		cmocka_unit_test(test_own_directory_list),
		cmocka_unit_test(test_closed_to_others),
		cmocka_unit_test(test_named_in_what_is_unasked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
