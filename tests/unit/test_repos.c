/* test_repos.c - the search for repositories in a writable grant: which it finds, which names do
 * not mislead it, and its limits, each at the limit and one past it. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <time.h>

#include "repos_world.h"

/* The search must fail, and the message must contain `named`. */
static void search_stops(const char *named, int error)
{
	struct ssb_error err = { 0 };

	repos_free(found);
	found = NULL;
	assert_int_equal(repos_find(&plan, &prepared, state_dir, &found, &err), -1);
	assert_null(found);
	assert_int_equal(err.sys_errno, error);
	if (strstr(err.text, named) == NULL) {
		fail_msg("'%s' is not in: %s", named, err.text);
	}
}

static bool has(const char *path, bool gitdir)
{
	for (size_t i = 0; found != NULL && i < found->n; i++) {
		if (strcmp(found->v[i].path, path) == 0 && found->v[i].gitdir == gitdir) {
			return true;
		}
	}
	return false;
}

static void test_only_writable_directories(void **state)
{
	dirs("a/.git");
	grant.access = ACCESS_READ;
	search();
	assert_null(found);
	grant.access = ACCESS_WRITE;
	search();
	assert_true(has("a", false));
	assert_int_equal(found->n, 1);
	assert_int_equal(prepared.warnings.n, 0);
}

static void test_what_is_a_repository(void **state)
{
	/* not found: the .git at the top of the grant, which is protected anyway, and a .git inside
	 * of a .git */
	dirs(".git/a/.git");
	dirs("b/c/.git");
	dirs("b/c/d/.git"); /* a repository inside of another one */
	dirs("plain/git");
	dirs("plain/.gitx");
	dirs("linked");
	assert_int_equal(symlink("../b/c/.git", in("w/linked/.git")), 0);
	assert_int_equal(symlink("b", in("w/link")), 0);
	search();
	assert_int_equal(found->n, 3);
	assert_true(has("b/c", false) && has("b/c/d", false) && has("linked", false));
}

/* With objects, refs and HEAD a directory is a bare repository; with two of the three it is not. A
 * work tree inside it is found as well. */
static void test_bare_repositories(void **state)
{
	static const char *const DIRS[] = { "", "x.git/", "y/z.git/" };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		snprintf(path, sizeof(path), "%sobjects", DIRS[i]);
		dirs(path);
		snprintf(path, sizeof(path), "%srefs", DIRS[i]);
		dirs(path);
		snprintf(path, sizeof(path), "%sHEAD", DIRS[i]);
		file(path, "ref: refs/heads/x\n");
	}
	dirs("x.git/tree/.git");
	dirs("paper/refs");
	dirs("paper/objects");
	search();
	assert_true(has("", true) && has("x.git", true) && has("y/z.git", true));
	assert_true(has("x.git/tree", false));
	assert_int_equal(found->n, 4);
	assert_int_equal(prepared.warnings.n, 0);
}

static void test_git_files(void **state)
{
	char text[128];

	dirs("gd");
	dirs("main/.git/worktrees/wt");
	dirs("bare.git/worktrees/wt2");
	dirs("x/rel");
	dirs("wt");
	dirs("wt2");
	dirs("sub");
	dirs(".git/modules/sub");
	file("x/rel/.git", "gitdir: ../../gd\n");
	snprintf(text, sizeof(text), "gitdir: %s\n", in("w/main/.git/worktrees/wt"));
	file("wt/.git", text);
	file("main/.git/worktrees/wt/commondir", "../..\n");
	file("wt2/.git", "gitdir: ../bare.git/worktrees/wt2");
	file("bare.git/worktrees/wt2/commondir", "../..\n");
	file("sub/.git", "gitdir: ../.git/modules/sub\r\n");
	search();
	assert_true(has("x/rel", false) && has("gd", true));
	assert_true(has("wt", false) && has("main", false));
	/* The bare repository is found through its worktree, whose .git file names it. */
	assert_true(has("wt2", false) && has("bare.git/worktrees/wt2", true));
	assert_true(has("bare.git", true));
	/* A git directory inside of a protected git directory needs no separate entry: it is
	 * read-only anyway. */
	assert_true(has("sub", false) && !has(".git/modules/sub", true));
	assert_false(has("main/.git", true));
}

static void test_pointers_that_lead_nowhere(void **state)
{
	static const char *const TEXTS[] = { "gitdir: /etc\n",
		                             "gitdir: ../../outside\n",
		                             "gitdir: out\n",
		                             "gitdir: \n",
		                             "gitdir:../gd\n",
		                             "gitdir: missing\n",
		                             "",
		                             "\n",
		                             "gitdir: ../file\n" };
	char path[64];

	assert_int_equal(mkdir(in("outside"), 0755), 0);
	dirs("gd");
	dirs("fifo");
	file("file", "x");
	assert_int_equal(mkfifo(in("w/fifo/.git"), 0644), 0);
	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		snprintf(path, sizeof(path), "r%zu", i);
		dirs(path);
		snprintf(path, sizeof(path), "r%zu/.git", i);
		file(path, TEXTS[i]);
	}
	assert_int_equal(symlink("../../outside", in("w/r2/out")), 0);
	search();
	assert_int_equal(found->n, ARRAY_LEN(TEXTS) + 1);
	for (size_t i = 0; i < found->n; i++) {
		assert_false(found->v[i].gitdir);
	}
	file("r0/.git", "gitdir: ../gd\n"); /* the control: a valid pointer */
	search();
	assert_true(has("gd", true));
	assert_int_equal(symlink("loop", in("w/loop")), 0);
	file("r0/.git", "gitdir: ../loop\n");
	search_stops("loop", ELOOP);
}

/* If a file of git settings, or a file that leads to one (.git, commondir), exists but cannot be
 * read, the run must not start. */
static void test_what_cannot_be_read(void **state)
{
	static const char *const FILES[] = { "r/.git/config", "r/.git/commondir", "wt/.git", "more",
		                             "r/.git/config.worktree" };
	char path[64];

	(void)signal(SIGIO, SIG_IGN); /* SIGIO: another process opens the leased file */
	dirs("r/.git");
	dirs("wt");
	file("r/.git/config", "[include]\npath = ../../more\n");
	file("r/.git/config.worktree", "");
	file("r/.git/commondir", ".\n");
	file("wt/.git", "gitdir: ../r/.git\n");
	file("more", "");
	search();
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		snprintf(path, sizeof(path), "w/%s", FILES[i]);
		auto_fd fd = open(in(path), O_RDONLY | O_CLOEXEC);
		assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
		search_stops(path_base(FILES[i]), EAGAIN);
		assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
		search();
		assert_int_equal(chmod(in(path), 0), 0);
		if (geteuid() != 0) {
			search_stops(path_base(FILES[i]), EACCES);
		}
		assert_int_equal(chmod(in(path), 0644), 0);
	}
}

static void test_long_and_binary_pointers(void **state)
{
	static char text[20000];

	dirs("a");
	dirs("gd");
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "gitdir: ", 8);
	file("a/.git", text);
	search();
	assert_int_equal(found->n, 1);
	auto_fd fd = open(in("w/a/.git"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "gitdir: ../gd\0\n", 15), 15);
	search(); /* git stops reading at the NUL byte */
	assert_int_equal(found->n, 2);
	assert_true(has("gd", true));
}

#define FOUR         "a/b/c/d/"
#define TWENTY_EIGHT FOUR FOUR FOUR FOUR FOUR FOUR FOUR

static void test_depth(void **state)
{
	assert_int_equal(MAX_REPO_DEPTH, 32);
	dirs(TWENTY_EIGHT "1/2/3/4/.git");
	search();
	assert_true(has(TWENTY_EIGHT "1/2/3/4", false));
	assert_int_equal(prepared.warnings.n, 0);
	dirs(TWENTY_EIGHT "1/2/3/4/5/.git");
	search();
	assert_int_equal(found->n, 1);
	assert_int_equal(prepared.warnings.n, 1);
	assert_non_null(strstr(prepared.warnings.v[0], "too deep"));
	assert_non_null(strstr(prepared.warnings.v[0], grant.path));
	/* When a run is prepared again with the same plan, the warning is not repeated. */
	repos_free(found);
	found = NULL;
	assert_int_equal(repos_find(&plan, &prepared, NULL, &found, &(struct ssb_error){ 0 }), 0);
	assert_int_equal(prepared.warnings.n, 1);
}

static void assert_too_many(size_t n)
{
	search();
	assert_int_equal(found->n, n);
	assert_int_equal(prepared.warnings.n, 1);
	assert_non_null(strstr(prepared.warnings.v[0], "too many repositories"));
}

static void test_number(void **state)
{
	char path[64];

	let_open(MAX_RUN_FILES);
	for (size_t i = 0; i <= MAX_REPOS; i++) {
		snprintf(path, sizeof(path), "%zu/.git", i);
		dirs(path);
		if (i + 1 == MAX_REPOS) {
			search();
			assert_int_equal(found->n, MAX_REPOS);
			assert_int_equal(prepared.warnings.n, 0);
		}
	}
	assert_too_many(MAX_REPOS);
}

/* Each repository needs 34 fds, and so does the grant itself; everything else in a run needs 129
 * fds. */
static void test_number_by_open_files(void **state)
{
	char path[64];

	for (size_t i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "%zu/.git", i);
		dirs(path);
	}
	let_open(129 + 34 + 34 * 5);
	assert_too_many(5);
	let_open(129);
	assert_too_many(0);
	let_open(129 + 34 + 34 * 40);
	search();
	assert_int_equal(found->n, 40);
	assert_int_equal(prepared.warnings.n, 0);
}

static clockid_t going; /* this clock advances by 20 ms at each reading */
static long lost_ms;
static unsigned looks; /* how often the CPU clock was read */

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int rc = __real_clock_gettime(id, ret);

	looks += id == CLOCK_THREAD_CPUTIME_ID;
	/* If the CPU clock is advanced, CLOCK_MONOTONIC must be advanced as well. */
	if ((id == going || (id == CLOCK_MONOTONIC && going == CLOCK_THREAD_CPUTIME_ID)) &&
	    going != CLOCK_REALTIME) {
		lost_ms += 20;
		ret->tv_sec += lost_ms / 1000;
		ret->tv_nsec += lost_ms % 1000 * 1000000;
	}
	return rc;
}

/* For the time limit of the search, its CPU time counts fully, and the time that it waits (for a
 * slow disk) only in part. */
static void test_time(void **state)
{
	char path[64];

	for (size_t i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "%zu/.git", i);
		dirs(path);
	}
	looks = 0;
	search();
	/* the CPU clock must not be read for each directory, but only when so much real time has
	 * passed that the limit may be reached */
	assert_true(looks < 30);
	going = CLOCK_MONOTONIC;
	search();
	assert_int_equal(found->n, 30);
	assert_int_equal(prepared.warnings.n, 0);
	for (size_t i = 30; i < 150; i++) {
		snprintf(path, sizeof(path), "%zu/.git", i);
		dirs(path);
	}
	search();
	assert_true(found->n > 30 && found->n < 150);
	assert_non_null(strstr(prepared.warnings.v[0], "too long"));
	going = CLOCK_THREAD_CPUTIME_ID;
	search();
	assert_true(found->n > 0 && found->n < 30);
	assert_non_null(strstr(prepared.warnings.v[0], "too long"));
	going = CLOCK_REALTIME;
}

/* Makes more entries than a search reads. They are links to one file, which is faster than
 * files. */
static void crowd(const char *in_dir)
{
	char path[64];

	file("one", "");
	for (size_t i = 0; i <= MAX_REPO_ENTRIES; i++) {
		snprintf(path, sizeof(path), "%s/%zu", in_dir, i / 500);
		if (i % 500 == 0) {
			dirs(path);
		}
		snprintf(path, sizeof(path), "w/%s/%zu/%zu", in_dir, i / 500, i);
		assert_int_equal(link(in("w/one"), in(path)), 0);
	}
}

/* The first run records the owner's repositories. Then a skill hides them among more entries than a
 * search reads. The next run must still protect them. */
static void test_known_from_before(void **state)
{
	dirs("z/y/mine/.git");
	dirs("z/y/gone/.git");
	dirs("z/else/.git");
	state_dir = root;
	search();
	assert_int_equal(found->n, 3);
	assert_int_equal(tree_remove(AT_FDCWD, in("w/z/y/gone")), 0);
	assert_int_equal(rename(in("w/z/else"), in("w/moved")), 0);
	assert_int_equal(symlink("../moved", in("w/z/else")), 0);
	crowd("crowd");
	search();
	assert_true(has("z/y/mine", false));
	assert_false(has("z/y/gone", false) || has("z/else", false));
	assert_non_null(strstr(prepared.warnings.v[0], "too many files"));
	state_dir = NULL;
	search();
	assert_false(has("z/y/mine", false)); /* the control: without the record it is not found */
}

/* The file with the known repositories is used only if it belongs to the owner. In it, only
 * absolute paths are used. */
static void test_known_by_whom(void **state)
{
	static const struct {
		mode_t mode;
		const char *text;
		size_t len;
		bool counts;
	} CASES[] = {
		{ 0600, NULL, 0, true },
		{ 0600, "relative\0", 9, false },
		{ 0600, "", 0, false },
		{ 0600, "\0\0/\0//\0", 7, false },
	};

	dirs("z/y/mine/.git");
	crowd("crowd");
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		const char *own = in("w/z/y/mine");
		const char *text = CASES[i].text != NULL ? CASES[i].text : own;
		size_t len = CASES[i].text != NULL ? CASES[i].len : strlen(own) + 1;
		int fd = open(in("repositories"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
		assert_int_equal(fchmod(fd, CASES[i].mode), 0);
		own_close(&fd);
		state_dir = root;
		search();
		assert_int_equal(has("z/y/mine", false), CASES[i].counts);
	}
	/* If other users can write the file, the run must not start: entries may have been
	 * removed. */
	assert_int_equal(chmod(in("repositories"), 0622), 0);
	search_stops("repositories", 0);
	assert_int_equal(unlink(in("repositories")), 0);
	assert_int_equal(symlink("elsewhere", in("repositories")), 0);
	search_stops("repositories", ELOOP);
	assert_int_equal(access(in("elsewhere"), F_OK), -1);
}

/* If this file is full of paths that no longer exist, they are removed, and the repository that was
 * found is stored. */
static void test_known_are_many(void **state)
{
	struct stat st;
	char *all = calloc(1, MAX_KNOWN_BYTES);

	assert_non_null(all);
	for (size_t i = 0; i < MAX_KNOWN_BYTES; i += 64) {
		snprintf(all + i, 64, "/gone/%057zu", i);
	}
	int fd = open(in("repositories"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, all, MAX_KNOWN_BYTES) == (ssize_t)MAX_KNOWN_BYTES);
	own_close(&fd);
	dirs("mine/.git");
	state_dir = root;
	search();
	assert_int_equal(stat(in("repositories"), &st), 0);
	assert_int_equal(st.st_size, strlen(in("w/mine")) + 1);
	search();
	assert_int_equal(stat(in("repositories"), &st), 0);
	assert_int_equal(st.st_size, strlen(in("w/mine")) + 1);
	assert_int_equal(found->n, 1);
	free(all);
}

/* Directories near the top of the grant are searched first. So if the limit of entries is reached,
 * only deep directories are missing. */
static void test_entries(void **state)
{
	char path[64];

	dirs("near/.git");
	dirs("many");
	dirs("z/far/.git");
	auto_fd one = open(in("one"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(one >= 0);
	/* - 6: near, near/.git, many, z, z/far and z/far/.git count for the limit, too */
	for (int i = 0; i < MAX_REPO_ENTRIES - 6; i++) {
		snprintf(path, sizeof(path), "w/many/%d", i);
		assert_int_equal(link(in("one"), in(path)), 0);
	}
	search();
	assert_true(has("near", false) && has("z/far", false));
	assert_int_equal(prepared.warnings.n, 0);
	file("many/one", "");
	dirs("many/d");
	search();
	assert_true(has("near", false));
	assert_int_equal(prepared.warnings.n, 1);
	assert_non_null(strstr(prepared.warnings.v[0], "too many files"));
}

/* Directories of package managers (node_modules) are searched last. If the limit is reached in
 * them, the owner gets no warning. */
static void test_packages(void **state)
{
	crowd("a/node_modules");
	dirs("a/node_modules/x/.git");
	dirs("z/b/c/repo/.git");
	search();
	assert_true(has("z/b/c/repo", false));
	assert_int_equal(prepared.warnings.n, 0);
	assert_int_equal(prepared.quiet.n, 1);
	assert_non_null(strstr(prepared.quiet.v[0], "packages"));
	assert_int_equal(tree_remove(AT_FDCWD, in("w/a/node_modules/0")), 0);
	search(); /* now the search can read all of it */
	assert_true(has("a/node_modules/x", false));
	assert_int_equal(prepared.warnings.n + prepared.quiet.n, 0);
	/* The name must be exactly node_modules. If the limit is reached in another directory, the
	 * owner gets a warning. */
	assert_int_equal(rename(in("w/a/node_modules"), in("w/a/node_modules2")), 0);
	dirs("a/more");
	crowd("a/more");
	search();
	assert_int_equal(prepared.warnings.n, 1);
	assert_int_equal(prepared.quiet.n, 0);
}

static bool warned_of_mount(void)
{
	return prepared.warnings.n == 1 &&
	       strstr(prepared.warnings.v[0], "is another mount") != NULL;
}

/* Mounts a directory in the grant, in a new mount namespace, and searches the grant there. */
static int search_beside_mount(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
	    mount(in("w/other"), in("w/below"), NULL, MS_BIND, NULL) != 0) {
		return 2;
	}
	own_close(&grant.fd);
	grant.fd = open(in("w"), O_PATH | O_CLOEXEC);
	search();
	return has("other/repo", false) && !has("below/repo", false) && warned_of_mount() ? 0 : 1;
}

static void test_another_mount(void **state)
{
	int wstatus;

	dirs("other/repo/.git");
	dirs("below");
	search();
	assert_int_equal(prepared.warnings.n, 0);
	pid_t pid = fork();
	if (pid == 0) {
		_exit(search_beside_mount());
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	assert_int_equal(wstatus, 0);
}

static void test_no_descriptors_left(void **state)
{
	struct rlimit before, none;

	dirs("a/.git");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	search_stops(in("w"), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* The mode of a directory (0 or 0444) prevents a user's search. The user owns the directory, so a
 * skill could change the mode: the directory is protected as a whole. Root's search finds the
 * repository in it. The test has as many such directories as the limit allows, and one more. */
static void test_closed_directory(void **state)
{
	const size_t closed = geteuid() == 0 ? 0 : MAX_HELD;
	struct ssb_error err = { 0 };
	char name[32];

	dirs("closed/in/.git");
	/* first mode 0: cannot be listed; then 0444: cannot be entered */
	for (mode_t mode = 0; mode <= 0444; mode += 0444) {
		assert_int_equal(chmod(in("w/closed"), mode), 0);
		search();
		assert_int_equal(found->n, closed == 0);
		assert_int_equal(prepared.warnings.n, 0);
		assert_int_equal(found->links.n, closed != 0);
		assert_true(closed == 0 || (strcmp(found->links.v[0].path, "closed") == 0 &&
		                            found->links.v[0].read_only));
	}
	for (size_t i = 1; i <= closed; i++) {
		if (i == closed) {
			search();
			assert_int_equal(found->links.n, MAX_HELD);
		}
		snprintf(name, sizeof(name), "w/c%zu", i);
		assert_int_equal(mkdir(in(name), 0), 0);
	}
	repos_free(found);
	found = NULL;
	assert_int_equal(repos_find(&plan, &prepared, NULL, &found, &err), closed == 0 ? 0 : -1);
	assert_int_equal(chmod(in("w/closed"), 0755), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_only_writable_directories, world, world_end),
		cmocka_unit_test_setup_teardown(test_what_is_a_repository, world, world_end),
		cmocka_unit_test_setup_teardown(test_bare_repositories, world, world_end),
		cmocka_unit_test_setup_teardown(test_git_files, world, world_end),
		cmocka_unit_test_setup_teardown(test_pointers_that_lead_nowhere, world, world_end),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_read, world, world_end),
		cmocka_unit_test_setup_teardown(test_long_and_binary_pointers, world, world_end),
		cmocka_unit_test_setup_teardown(test_depth, world, world_end),
		cmocka_unit_test_setup_teardown(test_number, world, world_end),
		cmocka_unit_test_setup_teardown(test_number_by_open_files, world, world_end),
		cmocka_unit_test_setup_teardown(test_time, world, world_end),
		cmocka_unit_test_setup_teardown(test_known_from_before, world, world_end),
		cmocka_unit_test_setup_teardown(test_known_by_whom, world, world_end),
		cmocka_unit_test_setup_teardown(test_known_are_many, world, world_end),
		cmocka_unit_test_setup_teardown(test_entries, world, world_end),
		cmocka_unit_test_setup_teardown(test_packages, world, world_end),
		cmocka_unit_test_setup_teardown(test_another_mount, world, world_end),
		cmocka_unit_test_setup_teardown(test_no_descriptors_left, world, world_end),
		cmocka_unit_test_setup_teardown(test_closed_directory, world, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
