/* test_placeholders.c - placeholders: names that a run reserves in a writable grant. Other runs
 * make and remove placeholders at the same time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/tree.h"
#include "sandbox/sources.h"

static char top[64];
static struct grant grant;
static struct ssb_plan plan;
static bool ends; /* true: the run that has .vscode ends when mkdirat() finds the name */

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	int rc = __real_mkdirat(dir, name, mode);

	if (ends && strcmp(name, ".vscode") == 0) {
		ends = false;
		assert_int_equal(rc, -1);
		assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
		errno = EEXIST;
	}
	return rc;
}

static int maker = -1; /* fd of .envrc in a run that completes the file just before unlinkat() */
static bool finished;

int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	if (maker >= 0 && !finished && strcmp(name, ".envrc") == 0) {
		assert_int_equal(write(maker, ".", 1), 1);
		finished = flock(maker, LOCK_SH | LOCK_NB) == 0;
	}
	return __real_unlinkat(dir, name, flags);
}

static int world(void **state)
{
	snprintf(top, sizeof(top), "/tmp/ssb-placeholders-XXXXXX");
	if (mkdtemp(top) == NULL) {
		return -1;
	}
	grant = (struct grant){ .path = top,
		                .where = "--write",
		                .access = ACCESS_WRITE,
		                .is_dir = true,
		                .fd = open(top, O_PATH | O_CLOEXEC) };
	plan = (struct ssb_plan){ .grants = &grant, .n_grants = 1, .home = "/nowhere" };
	return 0;
}

static int world_end(void **state)
{
	own_close(&grant.fd);
	return tree_remove(AT_FDCWD, top);
}

static struct placeholders *hold(void)
{
	struct ssb_error err = { 0 };
	struct placeholders *p = NULL;

	if (placeholders_make(&plan, NULL, NULL, &p, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return p;
}

static bool look(const char *name, struct stat *ret)
{
	return fstatat(grant.fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

static void assert_held(const char *name)
{
	struct stat st;

	assert_true(look(name, &st));
	assert_true(placeholders_is_ours(&st));
}

static void assert_empty(void)
{
	DIR *d = opendir(top);
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL) {
		n++;
	}
	(void)closedir(d);
	assert_int_equal(n, 2);
}

static void removed_when_another_begins(void **state)
{
	assert_int_equal(mkdirat(grant.fd, ".vscode", 01500), 0);
	assert_held(".vscode");
	ends = true;
	struct placeholders *p = hold();
	assert_false(ends);
	assert_held(".vscode");
	placeholders_remove(p);
	assert_empty();
}

static void left_by_one_that_died_when_it_made_it(void **state)
{
	int fd = openat(grant.fd, ".envrc", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 01400);
	assert_true(fd >= 0);
	own_close(&fd);
	struct placeholders *p = hold();
	assert_held(".envrc");
	placeholders_remove(p);
	assert_empty();
}

/* While another run has its placeholder locked, this run must not replace the file. */
static void finished_when_it_is_removed(void **state)
{
	struct stat mine, named;

	maker = openat(grant.fd, ".envrc", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 01400);
	assert_true(maker >= 0 && fstat(maker, &mine) == 0);
	struct placeholders *p = hold();
	assert_held(".envrc");
	assert_true(look(".envrc", &named));
	assert_true(!finished || named.st_ino == mine.st_ino);
	own_close(&maker);
	placeholders_remove(p);
	assert_empty();
}

static void owner_s_own_is_left_alone(void **state)
{
	static const mode_t MODES[] = { 0644, 0444, 0400, 01600, 01666, 0 };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(MODES); i++) {
		int fd = openat(grant.fd, ".envrc", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(fd >= 0 && fchmod(fd, MODES[i]) == 0);
		own_close(&fd);
		placeholders_remove(hold());
		assert_true(look(".envrc", &st));
		assert_int_equal(st.st_mode, S_IFREG | MODES[i]);
		assert_int_equal(unlinkat(grant.fd, ".envrc", 0), 0);
	}
}

/* A skill has locked a placeholder: the next run fails, and says what to do. The name stays
 * protected. */
static void locked_by_somebody_else(void **state)
{
	struct ssb_error err = { 0 };
	struct placeholders *p = NULL;

	assert_int_equal(mkdirat(grant.fd, ".vscode", 01555), 0);
	int locked = openat(grant.fd, ".vscode", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(placeholders_make(&plan, NULL, NULL, &p, &err), -1);
	assert_int_equal(err.sys_errno, EBUSY);
	assert_non_null(strstr(err.text, ".vscode"));
	assert_non_null(strstr(err.text, "end that run"));
	own_close(&locked);
	placeholders_remove(hold());
	assert_empty();
}

static void read_commondir(const char *dir, char text[16])
{
	char path[64];

	snprintf(path, sizeof(path), "%s%scommondir", dir, *dir != '\0' ? "/" : "");
	auto_fd fd = openat(grant.fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, 15) : -1;
	assert_true(n >= 0);
	text[n > 0 ? n : 0] = '\0';
}

static void make_git_layout(const char *dir)
{
	static const char *const NAMES[] = { "HEAD", "objects", "refs" };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		snprintf(path, sizeof(path), "%s%s%s", dir, *dir != '\0' ? "/" : "", NAMES[i]);
		/* A symlink without a target counts, too: a skill could make the target later. */
		assert_int_equal(symlinkat("later", grant.fd, path), 0);
	}
}

/* A skill makes a bare repository at the top of the grant: its placeholder must keep git from using
 * it, even after the run. The owner's .git has the same layout but is not a bare repository: the
 * placeholder there must change nothing. */
static void keeps_git_out(void **state)
{
	char text[16], dir[PATH_MAX];
	struct stat st;

	assert_int_equal(mkdirat(grant.fd, ".git", 0755), 0);
	make_git_layout(".git");
	struct placeholders *p = hold();
	read_commondir("", text);
	assert_string_equal(text, "/dev/null");
	read_commondir(".git", text);
	assert_string_equal(text, ".");
	assert_false(placeholders_keep_git_out(p, dir, sizeof(dir)));
	make_git_layout("");
	assert_true(placeholders_keep_git_out(p, dir, sizeof(dir)));
	assert_string_equal(dir, top);
	placeholders_remove(p);
	assert_held("commondir");
	assert_false(look(".git/commondir", &st));
	/* The next run keeps the placeholder as long as the bare repository is complete. */
	placeholders_remove(hold());
	read_commondir("", text);
	assert_string_equal(text, "/dev/null");
	assert_int_equal(unlinkat(grant.fd, "refs", 0), 0);
	placeholders_remove(hold());
	assert_false(look("commondir", &st));
}

/* During the run, the owner's git may make the directories of its state. */
static void open_to_the_owner(void **state)
{
	struct stat st;

	assert_int_equal(mkdirat(grant.fd, ".git", 0755), 0);
	struct placeholders *p = hold();
	auto_fd fd = openat(grant.fd, ".git/sequencer/abort-safety", O_WRONLY | O_CREAT | O_CLOEXEC,
	                    0644);
	assert_true(fd >= 0);
	placeholders_remove(p);
	assert_false(look(".git/sequencer", &st));
}

/* For some names, programs must not think that they exist. The placeholder for such a name is a
 * symlink without a target. The run locks the directory above it, because a symlink cannot be
 * locked. */
static void held_by_a_link(void **state)
{
	struct ssb_error err = { 0 };
	struct placeholders *p = NULL;
	struct stat st;

	assert_int_equal(mkdirat(grant.fd, ".git", 0755), 0);
	struct placeholders *one = hold();
	struct placeholders *two = hold();
	assert_true(placeholders_is_link(grant.fd, ".git/rebase-merge"));
	assert_true(look(".git/sequencer", &st) && placeholders_is_open(&st));
	assert_int_equal(fstatat(grant.fd, ".git/rebase-merge", &st, 0), -1);
	assert_int_equal(errno, ENOENT);
	placeholders_remove(one);
	assert_true(placeholders_is_link(grant.fd, ".git/rebase-merge"));
	placeholders_remove(two);
	assert_false(look(".git/rebase-merge", &st) || look(".git/sequencer", &st));
	/* A placeholder symlink that an earlier run has left is used again, and removed at the end.
	 * Files and symlinks of the owner stay. */
	assert_int_equal(symlinkat("/proc/held-by-skillsandbox", grant.fd, ".git/rebase-apply"), 0);
	assert_int_equal(symlinkat("elsewhere", grant.fd, ".git/rebase-merge"), 0);
	assert_int_equal(mkdirat(grant.fd, ".git/sequencer", 0755), 0);
	placeholders_remove(hold());
	assert_false(look(".git/rebase-apply", &st));
	assert_true(look(".git/rebase-merge", &st) && look(".git/sequencer", &st));
	assert_int_equal(unlinkat(grant.fd, ".git/rebase-merge", 0), 0);
	/* If a skill has locked the directory, another run fails with EBUSY. */
	int locked = openat(grant.fd, ".git", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(locked, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(placeholders_make(&plan, NULL, NULL, &p, &err), -1);
	assert_int_equal(err.sys_errno, EBUSY);
	own_close(&locked);
	placeholders_remove(hold());
	assert_int_equal(tree_remove(grant.fd, ".git"), 0);
	assert_empty();
}

/* A run of another user must be able to open and lock a placeholder, whatever the umask is. */
static void open_to_everybody(void **state)
{
	static const struct {
		mode_t umask, top;
	} CASES[] = { { 022, 0755 }, { 077, 0755 }, { 022, 02755 }, { 077, 02777 } };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		mode_t before = umask(CASES[i].umask);
		assert_int_equal(chmod(top, CASES[i].top), 0);
		struct placeholders *p = hold();
		(void)umask(before);
		assert_held(".envrc");
		assert_true(look(".envrc", &st) && (st.st_mode & 0777) == 0444);
		assert_held(".vscode");
		assert_true(look(".vscode", &st) && (st.st_mode & 0777) == 0555);
		placeholders_remove(p);
		assert_empty();
	}
}

static void let_open(rlim_t files)
{
	struct rlimit now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	now.rlim_cur = files < now.rlim_max ? files : now.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

/* With any number of free file descriptors, the run either fails with EMFILE or has all
 * placeholders. The same is true if it takes over the placeholders of a run that ends first. */
static void too_few_fds(void **state)
{
	struct ssb_error err;
	struct placeholders *p = NULL;
	int rc = -1;

	for (int others = 0; others < 2; others++) {
		struct placeholders *other = others ? hold() : NULL;
		auto_fd first = dup(grant.fd);
		rc = -1;
		for (int files = first + 1; rc != 0; files++) {
			err = (struct ssb_error){ 0 };
			let_open((rlim_t)files);
			rc = placeholders_make(&plan, NULL, NULL, &p, &err);
			let_open(RLIM_INFINITY);
			assert_int_equal(err.sys_errno, rc == 0 ? 0 : EMFILE);
		}
		placeholders_remove(other);
		assert_held(".git");
		assert_held(".vscode");
		assert_held("GEMINI.md"); /* the last placeholder that is made */
		placeholders_remove(p);
		assert_empty();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removed_when_another_begins, world, world_end),
		cmocka_unit_test_setup_teardown(left_by_one_that_died_when_it_made_it, world,
		                                world_end),
		cmocka_unit_test_setup_teardown(finished_when_it_is_removed, world, world_end),
		cmocka_unit_test_setup_teardown(owner_s_own_is_left_alone, world, world_end),
		cmocka_unit_test_setup_teardown(held_by_a_link, world, world_end),
		cmocka_unit_test_setup_teardown(keeps_git_out, world, world_end),
		cmocka_unit_test_setup_teardown(open_to_the_owner, world, world_end),
		cmocka_unit_test_setup_teardown(open_to_everybody, world, world_end),
		cmocka_unit_test_setup_teardown(locked_by_somebody_else, world, world_end),
		cmocka_unit_test_setup_teardown(too_few_fds, world, world_end),
	};

	return cmocka_run_group_tests_name("placeholders", tests, NULL, NULL);
}
