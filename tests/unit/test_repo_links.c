/* test_repo_links.c - where repositories lead: their symlinks and the paths in their git settings,
 * each at its limit and one past it. */
#include <errno.h>

#include "repos_world.h"

/* Makes a chain of n symlinks, l0 -> l1 -> ..., the last of which points to `to`. */
static void chain(int n, const char *to)
{
	char name[32], next[32];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "w/l%d", i);
		snprintf(next, sizeof(next), "l%d", i + 1);
		(void)unlink(in(name));
		assert_int_equal(symlink(i + 1 == n ? to : next, in(name)), 0);
	}
}

static void test_where_links_lead(void **state)
{
	struct links links = { 0 };
	bool there;

	dirs("a/b");
	/* A chain of as many symlinks as the kernel allows is followed. All of its symlinks are
	 * protected, and so are the symlinks in the path of its last target. */
	assert_int_equal(symlink("../a", in("w/a/x")), 0);
	chain(39, "a/./x/../a/b/");
	auto_free char *real = links_follow(&links, &plan, in("w/l0"), false, &there);
	assert_true(there);
	assert_string_equal(real, in("w/a/b"));
	assert_int_equal(links.n, 41);
	assert_string_equal(links.v[0].path, "l0");
	assert_string_equal(links.v[39].path, "a/x");
	assert_true(links.v[39].read_only);
	assert_string_equal(links.v[40].path, "a");
	assert_false(links.v[40].read_only);
	links_done(&links);
	/* A chain with one symlink more is not followed to its end. */
	chain(40, "a/./x/../a/b/");
	auto_free char *cut = links_follow(&links, &plan, in("w/l0"), false, &there);
	assert_false(there);
	assert_string_equal(cut, in("w/a/x"));
	/* A path is followed as far as its parts exist, and never above the root directory. */
	auto_free char *gone = links_follow(&links, &plan, in("w/a/gone/../b"), false, &there);
	assert_false(there);
	assert_string_equal(gone, in("w/a/gone"));
	auto_free char *highest = links_follow(&links, &plan, "/../..//", false, &there);
	assert_true(there);
	assert_string_equal(highest, "/");
	links_done(&links);
}

static void test_links_held(void **state)
{
	struct links links = { 0 };
	char name[32];
	bool there;

	for (int i = 0; i <= MAX_HELD; i++) {
		snprintf(name, sizeof(name), "w/n%d", i);
		assert_int_equal(symlink("..", in(name)), 0);
		auto_free char *real = links_follow(&links, &plan, in(name), false, &there);
		assert_int_equal(real != NULL, i < MAX_HELD);
		assert_int_equal(links.n, i < MAX_HELD ? i + 1 : MAX_HELD);
	}
	assert_int_equal(errno, E2BIG);
	/* A symlink that is already in the list is not added again. A symlink outside of the grant
	 * needs no protection. */
	assert_int_equal(symlink("w", in("out")), 0);
	auto_free char *again = links_follow(&links, &plan, in("w/n0"), false, &there);
	auto_free char *out = links_follow(&links, &plan, in("out"), false, &there);
	assert_true(again != NULL && out != NULL);
	links_done(&links);
}

/* Many repositories have several symlinks to one file of agent instructions. */
static void test_links_of_many_repositories(void **state)
{
	static const char *const LINKS[] = { "CLAUDE.md", "GEMINI.md", ".cursorrules",
		                             ".windsurfrules" };
	struct ssb_error err = { 0 };
	char path[64];

	let_open(MAX_RUN_FILES);
	for (size_t i = 0; i < MAX_REPOS; i++) {
		snprintf(path, sizeof(path), "%zu/.git", i);
		dirs(path);
		snprintf(path, sizeof(path), "%zu/AGENTS.md", i);
		file(path, "mine");
		for (size_t k = 0; k < ARRAY_LEN(LINKS); k++) {
			snprintf(path, sizeof(path), "w/%zu/%s", i, LINKS[k]);
			assert_int_equal(symlink("AGENTS.md", in(path)), 0);
		}
	}
	search();
	assert_int_equal(found->n, MAX_REPOS);
	assert_int_equal(links_hold(&plan, NULL, found, NULL, &err), 0);
	assert_int_equal(found->links.n, MAX_REPOS * (ARRAY_LEN(LINKS) + 1));
}

static bool names(const char *path, bool is_dir)
{
	for (size_t i = 0; i < found->n_named; i++) {
		const struct named *n = &found->named[i];
		if (strcmp(n->path, path) == 0 && n->is_dir == is_dir) {
			return true;
		}
	}
	return false;
}

static void test_what_settings_name(void **state)
{
	dirs("main/.git/worktrees/wt");
	dirs("wt");
	dirs("a/b");
	file("main/.git/config", "[core]\nhooksPath = a/b\n[include]\npath = ~/w/more\n");
	file("main/.git/config.worktree", "[core]\nhooksPath = ../a/./x/../y\n");
	file("main/.git/worktrees/wt/commondir", "../..\n");
	file("main/.git/worktrees/wt/config.worktree", "[include]\npath = own\n");
	file("wt/.git", "gitdir: ../main/.git/worktrees/wt\n");
	file("more", "[include]\npath = more\npath = /etc/passwd\npath = w/deep\npath = deep\n");
	search();
	assert_int_equal(prepared.warnings.n, 0);
	/* A relative path in the settings counts for each work tree and for the git directory, if
	 * it exists there. */
	assert_true(names("main/a", true) && names("wt/a", true) && names("main/.git/a", true));
	assert_true(names("a/x", true) && names("main/a", true));
	assert_true(names("more", false) && names("w", false) && names("deep", false));
	assert_true(names("main/.git/worktrees/wt/own", false));
	/* The owner's settings (~/.gitconfig) apply to every work tree. Files that they include are
	 * read, too. */
	write_file(in(".gitconfig"), "[core]\nhooksPath = h\n[include]\npath = w/work\n", 0644);
	search();
	assert_true(names("work", false) && names("main/h", true) && names("wt/h", true));
	assert_false(names("h", true));
	assert_int_equal(unlink(in(".gitconfig")), 0);
	search();
	assert_false(names("work", false));
}

static void test_settings_at_their_bounds(void **state)
{
	static char text[MAX_REPO_CONFIG + 2];
	size_t at = 0;

	dirs(".git");
	memset(text, '#', MAX_REPO_CONFIG);
	memcpy(text, "[core]\nhooksPath = h\n", 21);
	file(".git/config", text);
	search();
	assert_true(names("h", true) && prepared.warnings.n == 0);
	text[MAX_REPO_CONFIG] = '#';
	file(".git/config", text);
	search();
	assert_true(names("h", true) && prepared.warnings.n == 1);
	assert_non_null(strstr(prepared.warnings.v[0], "settings in it are too long"));
	/* "- 2": the repository has two files of settings itself. The files of the owner and of the
	 * machine have a separate limit. */
	at = (size_t)snprintf(text, sizeof(text), "[include]\n");
	for (int i = 0; i <= MAX_REPO_CONFIGS - 2; i++) {
		file(".git/config", text);
		search();
		assert_int_equal(prepared.warnings.n, 0);
		assert_int_equal(found->n_named, i);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "path = f%d\n", i);
	}
	file(".git/config", text);
	search();
	assert_int_equal(prepared.warnings.n, 1);
	assert_non_null(strstr(prepared.warnings.v[0], "include too many files"));
	at = (size_t)snprintf(text, sizeof(text), "[core]\n");
	for (int i = 0; i <= MAX_NAMED; i++) {
		if (i == MAX_NAMED) {
			file(".git/config", text);
			search();
			assert_true(prepared.warnings.n == 0 && found->n_named == MAX_NAMED);
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, "hooksPath = %s/h%d\n",
		                       in("w"), i);
	}
	file(".git/config", text);
	search();
	assert_true(prepared.warnings.n == 1 && found->n_named == MAX_NAMED);
	assert_non_null(strstr(prepared.warnings.v[0], "name too many places"));
	/* The limit applies to hook directories outside of the grant, too: MAX_NAMED of them, and
	 * one more. A directory that does not exist does not count. */
	at = (size_t)snprintf(text, sizeof(text), "[core]\nhooksPath = %s\n", in("missing"));
	for (int i = 0; i <= MAX_NAMED; i++) {
		char name[16];
		file(".git/config", text);
		search();
		assert_true(prepared.warnings.n == 0 && found->hooks.n == (size_t)i);
		snprintf(name, sizeof(name), "h%d", i);
		assert_int_equal(mkdir(in(name), 0755), 0);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "hooksPath = %s\n", in(name));
	}
	file(".git/config", text);
	search();
	assert_true(prepared.warnings.n == 1 && found->hooks.n == MAX_NAMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_where_links_lead, world, world_end),
		cmocka_unit_test_setup_teardown(test_links_held, world, world_end),
		cmocka_unit_test_setup_teardown(test_links_of_many_repositories, world, world_end),
		cmocka_unit_test_setup_teardown(test_what_settings_name, world, world_end),
		cmocka_unit_test_setup_teardown(test_settings_at_their_bounds, world, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
