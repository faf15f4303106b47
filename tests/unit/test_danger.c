/* test_danger.c - the table of dangerous places: a place is recognized by what it is (device and
 * inode), not by the name in a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/danger.h"
#include "policy/danger_set.h"
#include "policy/mounts.h"
#include "policy/protect.h"

static char top[64];
static char home[80];
static struct owner owner;

static char *at(const char *rest)
{
	static char path[4][512];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, 512, "%s/%s", home, rest);
	return p;
}

static int make_home(void **state)
{
	static const char *const DIRS[] = { ".ssh",   ".ssh/keys",    ".config",     ".config/gh",
		                            "notes",  "notes/a",      "elsewhere",   "dotfiles",
		                            ".local", ".local/state", "dotfiles/aws" };

	snprintf(top, sizeof(top), "/tmp/ssb-danger-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(home, sizeof(home), "%s/u", top);
	assert_int_equal(mkdir(home, 0755), 0);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	assert_int_equal(symlink("dotfiles/aws", at(".aws")), 0);
	owner = (struct owner){ .uid = getuid(), .gid = getgid(), .home = home };
	owner.config_dir = strdup(at("elsewhere/skillsandbox"));
	owner.state_dir = strdup(at(".local/state/skillsandbox"));
	return 0;
}

static int remove_home(void **state)
{
	free((void *)(uintptr_t)owner.config_dir);
	free((void *)(uintptr_t)owner.state_dir);
	return tree_remove(AT_FDCWD, top);
}

static struct danger_hits judge(struct danger *d, const char *path, enum access access, bool mounts)
{
	auto_fd fd = file_open_nosymlink(path, O_PATH);
	struct danger_hits hits = { .n = 99 };
	struct subject s;

	assert_true(fd >= 0);
	assert_int_equal(subject_init(&s, fd, path, NULL), 0);
	assert_int_equal(danger_judge(d, &s, access, &hits), 0);
	if (mounts) {
		assert_int_equal(danger_judge_mounts(d, danger_mounts(d), &s, access, &hits), 0);
	}
	return hits;
}

static struct danger_hits judge_missing(struct danger *d, const char *parent, const char *rest,
                                        enum access access)
{
	auto_fd fd = file_open_nosymlink(parent, O_PATH);
	struct danger_hits hits = { .n = 99 };
	struct subject s;

	assert_true(fd >= 0);
	assert_int_equal(subject_init(&s, fd, parent, rest), 0);
	assert_int_equal(danger_judge(d, &s, access, &hits), 0);
	return hits;
}

static bool has(const struct danger_hits *h, enum danger_how how, const char *part)
{
	for (size_t i = 0; i < h->n; i++) {
		if (h->v[i].how == how && strstr(h->v[i].place->path, part) != NULL) {
			return true;
		}
	}
	return false;
}

static bool never(const struct danger_hits *h)
{
	return h->n > 0 && (h->v[0].place->flags & DANGER_NEVER) != 0;
}

static void test_relations(void **state)
{
	struct danger *d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits h;

	assert_non_null(d);
	h = judge(d, at(".ssh"), ACCESS_READ, false);
	assert_true(has(&h, DANGER_IS, "/.ssh"));
	h = judge(d, at(".ssh/keys"), ACCESS_READ, false);
	assert_true(has(&h, DANGER_LIES_IN, "/.ssh"));
	h = judge(d, home, ACCESS_READ, false);
	assert_true(has(&h, DANGER_IS, home));
	assert_true(has(&h, DANGER_CONTAINS, "/.ssh"));
	h = judge(d, top, ACCESS_READ, false);
	assert_true(has(&h, DANGER_CONTAINS, home));
	h = judge(d, at(".config"), ACCESS_WRITE, false);
	assert_true(has(&h, DANGER_CONTAINS, "/.config/gcloud")); /* it does not exist yet */
	/* The controls: ordinary places are harmless. */
	h = judge(d, at("notes"), ACCESS_WRITE, true);
	assert_int_equal(h.n, 0);
	h = judge(d, at("notes/a"), ACCESS_READ, true);
	assert_int_equal(h.n, 0);
	h = judge(d, at("elsewhere"), ACCESS_READ, false);
	assert_true(has(&h, DANGER_CONTAINS, "elsewhere/skillsandbox"));
	assert_false(never(&h));
	h = judge(d, at("elsewhere"), ACCESS_WRITE, false); /* a skill could put a policy there */
	assert_true(has(&h, DANGER_CONTAINS, "elsewhere/skillsandbox"));
	assert_true(never(&h));
	h = judge_missing(d, at("elsewhere"), "skillsandbox", ACCESS_WRITE);
	assert_true(has(&h, DANGER_IS, "elsewhere/skillsandbox"));
	assert_false(never(&h)); /* the owner may grant it by name */
	danger_free(d);
}

/* A set of dangerous places that was made only for reads must judge a read in the same way as the
 * set for reads and writes. */
static void test_set_for_reads(void **state)
{
	struct danger *reads = danger_new(&owner, ACCESS_READ);
	struct danger *all = danger_new(&owner, ACCESS_WRITE);
	const char *paths[] = { "/",    "/etc", "/etc/ssh", "/run",         "/var/lib",
		                "/usr", home,   at(".ssh"), at("dotfiles"), top };

	assert_true(danger_judges(reads, ACCESS_READ) && !danger_judges(reads, ACCESS_WRITE));
	assert_true(danger_judges(all, ACCESS_READ) && danger_judges(all, ACCESS_WRITE));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (access(paths[i], F_OK) != 0) {
			continue; /* /etc/ssh is not on every machine */
		}
		struct danger_hits a = judge(reads, paths[i], ACCESS_READ, false);
		struct danger_hits b = judge(all, paths[i], ACCESS_READ, false);
		assert_int_equal(a.n, b.n);
		for (size_t k = 0; k < a.n; k++) {
			assert_string_equal(a.v[k].place->path, b.v[k].place->path);
			assert_string_equal(a.v[k].place->why, b.v[k].place->why);
			assert_int_equal(a.v[k].how, b.v[k].how);
		}
	}
	/* The control: /usr is dangerous only to write, and the set for reads and writes has it. */
	struct danger_hits usr = judge(all, "/usr", ACCESS_WRITE, false);
	assert_true(has(&usr, DANGER_IS, "/usr"));
	danger_free(reads);
	danger_free(all);
}

static void test_symlinked_store(void **state)
{
	struct danger *d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits h;

	h = judge(d, at("dotfiles/aws"), ACCESS_READ, false);
	assert_true(has(&h, DANGER_IS, "dotfiles/aws"));
	h = judge(d, at("dotfiles"), ACCESS_READ, false);
	assert_true(has(&h, DANGER_CONTAINS, "dotfiles/aws"));
	danger_free(d);
}

/* A place is found through several symlinks, ".." and loops of symlinks. */
static void test_symlinks_on_the_way(void **state)
{
	static const char *const LINKS[][2] = {
		{ "notes/a", "led" },         { "led", "led-twice" }, { "../u/notes", "up" },
		{ "notes/../notes", "back" }, { "loop-b", "loop-a" }, { "loop-a", "loop-b" },
	};

	for (size_t i = 0; i < ARRAY_LEN(LINKS); i++) {
		assert_int_equal(symlink(LINKS[i][0], at(LINKS[i][1])), 0);
		struct danger *d = danger_new(&owner, ACCESS_WRITE);
		assert_int_equal(danger_add(d, at(LINKS[i][1]), "is led to", DANGER_READ), 0);
		struct danger_hits a = judge(d, at("notes/a"), ACCESS_READ, false);
		struct danger_hits notes = judge(d, at("notes"), ACCESS_READ, false);
		assert_int_equal(has(&a, DANGER_IS, "/notes/a"), i < 2);
		assert_int_equal(has(&notes, DANGER_CONTAINS, "/notes/a"), i < 2);
		assert_int_equal(has(&notes, DANGER_IS, "/notes"), i == 2 || i == 3);
		danger_free(d);
	}
	for (size_t i = 0; i < ARRAY_LEN(LINKS); i++) {
		assert_int_equal(unlink(at(LINKS[i][1])), 0);
	}
}

static void test_system(void **state)
{
	static const struct {
		const char *path;
		enum access access;
		bool dangerous;
		bool never;
	} CASES[] = {
		{ "/", ACCESS_READ, true, true },
		{ "/proc", ACCESS_READ, true, true },
		{ "/proc/sys", ACCESS_READ, true, true },
		{ "/", ACCESS_WRITE, true, true },
		{ "/sys", ACCESS_READ, true, false },
		{ "/sys/kernel", ACCESS_READ, true, false },
		{ "/sys", ACCESS_WRITE, true, true },
		{ "/sys/kernel", ACCESS_WRITE, true, true },
		{ "/dev", ACCESS_READ, true, true },
		{ "/dev", ACCESS_WRITE, true, true },
		{ "/dev/null", ACCESS_READ, true, false },
		{ "/dev/null", ACCESS_WRITE, true, false },
		{ "/dev/pts", ACCESS_READ, true, true },
		{ "/etc/shadow", ACCESS_READ, true, false },
		{ "/etc", ACCESS_READ, true, false },
		{ "/etc", ACCESS_WRITE, true, false },
		{ "/etc/passwd", ACCESS_READ, false, false },
		{ "/etc/passwd", ACCESS_WRITE, true, false },
		{ "/usr/share", ACCESS_READ, false, false },
		{ "/usr/share", ACCESS_WRITE, true, false },
		{ "/run", ACCESS_READ, true, false },
		{ "/home", ACCESS_READ, true, false },
		{ "/var", ACCESS_READ, true, false },
		{ "/var/tmp", ACCESS_WRITE, true, false },
	};
	struct danger *d = danger_new(&owner, ACCESS_WRITE);

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct danger_hits h = judge(d, CASES[i].path, CASES[i].access, false);
		if ((h.n > 0) != CASES[i].dangerous || never(&h) != CASES[i].never) {
			fail_msg("%s %d: %zu hits, never %d", CASES[i].path, CASES[i].access, h.n,
			         never(&h));
		}
	}
	danger_free(d);
}

static void test_missing(void **state)
{
	struct danger *d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits h;

	h = judge_missing(d, home, ".kube", ACCESS_READ);
	assert_true(has(&h, DANGER_IS, "/.kube"));
	h = judge_missing(d, home, ".kube/config", ACCESS_READ);
	assert_true(has(&h, DANGER_LIES_IN, "/.kube"));
	h = judge_missing(d, home, ".cargo", ACCESS_WRITE);
	assert_true(has(&h, DANGER_CONTAINS, "/.cargo/credentials"));
	h = judge_missing(d, at(".ssh"), "new", ACCESS_WRITE);
	assert_true(has(&h, DANGER_LIES_IN, "/.ssh"));
	h = judge_missing(d, at(".local/state"), "skillsandbox/runs", ACCESS_WRITE);
	assert_true(h.n > 0 && (h.v[0].place->flags & DANGER_NEVER) != 0);
	h = judge_missing(d, "/usr", "new", ACCESS_WRITE);
	assert_true(has(&h, DANGER_LIES_IN, "/usr"));
	/* The controls: names with the same beginning, and ordinary names, are harmless. */
	h = judge_missing(d, home, ".kubernetes", ACCESS_WRITE);
	assert_int_equal(h.n, 0);
	h = judge_missing(d, home, "out/a", ACCESS_WRITE);
	assert_int_equal(h.n, 0);
	danger_free(d);
}

static void test_other_users(void **state)
{
	struct danger *d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits h = judge_missing(d, "/home", "somebody/notes", ACCESS_READ);

	assert_true(has(&h, DANGER_LIES_IN, "/home"));
	danger_free(d);

	/* If the owner's home is beneath the place of a row, the rows for homes apply in it. */
	assert_int_equal(mkdir(at("homes"), 0755), 0);
	assert_int_equal(mkdir(at("homes/me"), 0755), 0);
	assert_int_equal(mkdir(at("homes/me/x"), 0755), 0);
	char *me = strdup(at("homes/me"));
	struct owner o = { .uid = getuid(), .home = me };
	d = danger_new(&o, ACCESS_WRITE);
	assert_int_equal(danger_add(d, at("homes"), "holds homes",
	                            DANGER_READ | DANGER_BENEATH | DANGER_HOMES),
	                 0);
	h = judge(d, at("homes/me/x"), ACCESS_READ, false);
	assert_int_equal(h.n, 0);
	h = judge_missing(d, at("homes"), "you", ACCESS_READ);
	assert_true(has(&h, DANGER_LIES_IN, "homes"));
	danger_free(d);
	free(me);
}

/* Runs in a child process, in a mount namespace of its own. Returns 0 if all checks pass, 1 if not,
 * 77 if no namespace can be made. */
static int bind_child(void)
{
	if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(at(".ssh"), at("notes/a"), NULL, MS_BIND, NULL) < 0) {
		return 77;
	}
	struct danger *d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits alias = judge(d, at("notes/a"), ACCESS_READ, false);
	struct danger_hits above = judge(d, at("notes"), ACCESS_READ, true);
	struct danger_hits unseen = judge(d, at("notes"), ACCESS_READ, false);
	bool ok =
	        has(&alias, DANGER_IS, "/.ssh") && has(&above, DANGER_IS, "/.ssh") && unseen.n == 0;
	danger_free(d);

	/* Now only a directory in the store is mounted at another place. */
	if (umount(at("notes/a")) < 0 ||
	    mount(at(".ssh/keys"), at("notes/a"), NULL, MS_BIND, NULL) < 0) {
		return 77;
	}
	d = danger_new(&owner, ACCESS_WRITE);
	struct danger_hits part = judge(d, at("notes/a"), ACCESS_READ, true);
	ok = ok && has(&part, DANGER_LIES_IN, "/.ssh");
	danger_free(d);
	return ok ? 0 : 1;
}

static void test_bind_mounts(void **state)
{
	int status = -1;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(bind_child());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_mountinfo(void **state)
{
	struct mounts m;

	assert_int_equal(mounts_parse(strdup("1 0 8:1 / / rw - ext4 x rw\n"
	                                     "2 1 8:2 /a\\040b /mnt/x\\134y rw - ext4 x rw\n"),
	                              &m),
	                 0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.v[1].root, "/a b");
	assert_string_equal(m.v[1].point, "/mnt/x\\y");
	assert_ptr_equal(mounts_of(&m, "/mnt/x\\y/z"), &m.v[1]);
	assert_ptr_equal(mounts_of(&m, "/mnt/x"), &m.v[0]);
	mounts_done(&m);
	assert_int_equal(mounts_parse(strdup("1 0 8:1\n"), &m), -1);
}

/* Returns true if the danger table finds `store` in this home. The call with a set of dangerous
 * places and the call without a set must have the same result. */
static bool has_store(const char *in, const char *store)
{
	const struct owner o = { .uid = getuid(), .gid = getgid(), .home = in };
	struct danger *d = danger_new(&o, ACCESS_READ);
	struct string_list planned = { 0 };
	struct string_list found = { 0 };
	char path[PATH_MAX];

	assert_non_null(d);
	assert_int_equal(danger_stores(d, in, &planned), 0);
	danger_free(d);
	assert_int_equal(danger_stores(NULL, in, &found), 0);
	snprintf(path, sizeof(path), "%s/%s", in, store);
	bool ret = string_list_has(&found, path);
	assert_int_equal(string_list_has(&planned, path), ret);
	string_list_done(&planned);
	string_list_done(&found);
	return ret;
}

/* A store of the owner is found by its name, whatever it contains. If a path cannot be read, the
 * store counts as present. */
static void test_stores_of_the_owner(void **state)
{
	static const char *const NAMES[] = { ".ssh", ".config/gh", ".local/share/keyrings" };
	char in[] = "/tmp/test-danger-XXXXXX";

	assert_non_null(mkdtemp(in));
	assert_int_equal(chdir(in), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_false(has_store(in, NAMES[i]));
		assert_false(has_store("/nowhere/at/all", NAMES[i]));
		assert_false(has_store("/dev/null", NAMES[i]));
	}
	assert_int_equal(symlink("/nowhere", ".ssh"), 0);
	assert_int_equal(mkdir(".config", 0700), 0);
	assert_int_equal(mkdir(".config/gh", 0700), 0);
	assert_int_equal(mkdir(".local", 0700), 0);
	assert_int_equal(mkdir(".local/share", 0700), 0);
	assert_int_equal(mkdir(".local/share/keyrings", 0700), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	char closed[sizeof(in) + 8];
	snprintf(closed, sizeof(closed), "%s/loop", in);
	for (size_t i = 0; i < 3; i++) {
		assert_true(has_store(in, NAMES[i]));
		assert_true(has_store(closed, NAMES[i]));
	}
	assert_false(has_store(in, ".aws"));
	assert_int_equal(system("rm -r .ssh .config .local loop && rmdir \"$PWD\""), 0);
}

/* Each path has only one row. With two rows, the place would be reported twice. */
static void test_rows_are_different(void **state)
{
	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(DANGER_ROWS[i].path, DANGER_ROWS[j].path);
		}
	}
	for (size_t i = 0; i < NEVER_ROWS_COUNT; i++) {
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(NEVER_ROWS[i].row.path, NEVER_ROWS[j].row.path);
		}
	}
}

static void test_protected_names(void **state)
{
	assert_true(protect_has_name(".git/hooks"));
	assert_true(protect_has_name(".git/hooks/pre-commit"));
	assert_true(protect_has_name("CLAUDE.md"));
	assert_false(protect_has_name(".git/hooksy"));
	assert_false(protect_has_name(".git"));
	assert_false(protect_has_name("src/main.c"));
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		const char *name = PROTECTED[i].name;
		assert_true(name[0] != '/' && name[strlen(name) - 1] != '/');
		assert_null(strstr(name, ".."));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relations),
		cmocka_unit_test(test_set_for_reads),
		cmocka_unit_test(test_symlinked_store),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_other_users),
		cmocka_unit_test(test_bind_mounts),
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_protected_names),
		cmocka_unit_test(test_symlinks_on_the_way),
		cmocka_unit_test(test_rows_are_different),
		cmocka_unit_test(test_stores_of_the_owner),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
