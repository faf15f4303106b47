/* test_tree.c - a walk through a directory tree returns each entry once and in order, follows no
 * symlink, and ends. The removal of a tree removes everything in it, whatever the permissions are,
 * and nothing outside. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/buf.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/tree.h"

static bool note(void *arg, const struct tree_entry *e)
{
	struct buf *out = arg;

	buf_addf(out, "%s%s ", e->path,
	         S_ISDIR(e->st.st_mode)   ? "/"
	         : S_ISLNK(e->st.st_mode) ? "@"
	                                  : "");
	return strcmp(e->name, ".git") != 0;
}

static int top;

static int make(void **state)
{
	char dir[] = "/tmp/test-tree-XXXXXX";

	assert_non_null(mkdtemp(dir));
	top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(top >= 0);
	assert_int_equal(mkdirat(top, "b", 0700) | mkdirat(top, "b/c", 0700) |
	                         mkdirat(top, ".git", 0700),
	                 0);
	static const char *const files[] = { "a", "b/x", "b/c/y", ".git/config", "z" };
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_fd fd = openat(top, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
	}
	assert_int_equal(symlinkat("/", top, "b/loop"), 0);
	return unlinkat(top, "z", 0);
}

static int unmake(void **state)
{
	char path[64], dir[256];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", top);
	ssize_t n = readlink(path, dir, sizeof(dir) - 1);
	dir[n > 0 ? n : 0] = '\0';
	(void)close(top);
	return tree_remove(AT_FDCWD, dir);
}

static void test_walk(void **state)
{
	static const struct {
		struct tree_caps caps;
		bool whole;
		const char *seen;
	} v[] = {
		{ { 7, 3 }, true, ".git/ a b/ b/c/ b/c/y b/loop@ b/x " },
		{ { 6, 3 }, false, NULL },
		{ { 7, 2 }, false, ".git/ a b/ b/c/ b/loop@ b/x " },
		{ { 7, 1 }, false, ".git/ a b/ " },
		{ { 0, 3 }, false, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		auto_buf out = BUF(4096);

		buf_adds(&out, "");
		assert_int_equal(tree_walk(top, &v[i].caps, note, &out), v[i].whole);
		if (v[i].seen != NULL) {
			assert_string_equal(out.data, v[i].seen);
		}
	}
}

/* ---- removed ----------------------------------------------------------------- */

static bool is_there(const char *name)
{
	struct stat st;

	return fstatat(top, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put_file(const char *name)
{
	auto_fd fd = openat(top, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
}

static void test_remove(void **state)
{
	assert_int_equal(mkdirat(top, "out", 0700), 0);
	put_file("out/kept");
	assert_int_equal(symlinkat("../out", top, "b/link"), 0);
	assert_int_equal(symlinkat("out", top, "link"), 0);
	assert_int_equal(tree_remove(top, "b"), 0);
	assert_int_equal(tree_remove(top, "link"), 0); /* removes the symlink, not its target */
	assert_int_equal(tree_remove(top, "a"), 0);
	assert_int_equal(tree_remove(top, "a"), 0);
	assert_false(is_there("b") || is_there("link") || is_there("a"));
	assert_true(is_there("out/kept") && is_there(".git/config"));
}

/* A removal renames directories to temporary names. If such a name is already the name of a
 * directory with files, the removal still succeeds. */
static void test_remove_taken_names(void **state)
{
	assert_int_equal(mkdirat(top, "t", 0700) | mkdirat(top, "t/.removed-0", 0700) |
	                         mkdirat(top, "t/.removed-0/d", 0700),
	                 0);
	put_file("t/.removed-0/d/x");
	auto_fd t = openat(top, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_empty(t), 0);
	assert_true(is_there("t"));
	assert_int_equal(unlinkat(top, "t", AT_REMOVEDIR), 0); /* the directory is empty */
}

#define DEEP 3000 /* deeper than the number of fds, and longer than a path may be */

static void test_remove_deep(void **state)
{
	auto_fd at = openat(top, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < DEEP; i++) {
		assert_int_equal(mkdirat(at, "deep", 0700), 0);
		int next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		own_close(&at);
		at = next;
		assert_true(at >= 0);
	}
	assert_int_equal(tree_remove(top, "b"), 0);
	assert_false(is_there("b"));
}

/* Runs act() in a child process, where it may change uid and namespaces. Returns its exit
 * status. */
static int in_child(int (*act)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		_exit(act());
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define NOBODY 65534

static int without_rights(void)
{
	if (getuid() == 0 && (fchownat(top, "", NOBODY, NOBODY, AT_EMPTY_PATH) != 0 ||
	                      setegid(NOBODY) != 0 || seteuid(NOBODY) != 0)) {
		return 100;
	}
	if (mkdirat(top, "n", 0700) != 0 || mkdirat(top, "n/in", 0700) != 0 ||
	    mkdirat(top, "n/in/most", 0700) != 0 || fchmodat(top, "n/in/most", 0, 0) != 0 ||
	    fchmodat(top, "n/in", 0500, 0) != 0 || fchmodat(top, "n", 0, 0) != 0) {
		return 101;
	}
	/* The control: rmdir() of this directory is not permitted. */
	if (unlinkat(top, "n/in", AT_REMOVEDIR) == 0) {
		return 102;
	}
	return tree_remove(top, "n") == 0 && !is_there("n") ? 0 : 1;
}

static void test_remove_without_rights(void **state)
{
	assert_int_equal(in_child(without_rights), 0);
}

static bool tell(const char *file, const char *text)
{
	auto_fd fd = open(file, O_WRONLY | O_CLOEXEC);

	return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool map_self(uid_t uid, gid_t gid)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", (unsigned)uid);
	snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)gid);
	return tell("/proc/self/uid_map", users) && tell("/proc/self/setgroups", "deny") &&
	       tell("/proc/self/gid_map", groups);
}

/* Gives this process its own mount namespace, and opens `top` in it. */
static bool own_mounts(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int kinds = uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;

	if (fchdir(top) != 0 || unshare(kinds) != 0 || (uid != 0 && !map_self(uid, gid))) {
		return false;
	}
	top = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return mount("", "/", "", MS_REC | MS_PRIVATE, NULL) == 0;
}

static int with_a_mount(void)
{
	if (!own_mounts() || mount("tmp", "b/c", "tmpfs", 0, NULL) != 0) {
		return 100;
	}
	put_file("b/c/mounted");
	if (tree_remove(top, "b") == 0 || !is_there("b/c/mounted") || is_there("b/x")) {
		return 1;
	}
	return umount("b/c") == 0 && tree_remove(top, "b") == 0 && !is_there("b") ? 0 : 2;
}

/* Bind mounts of the same file system, at the top of the removed tree and deeper in it, must not be
 * emptied. */
static int with_bind_mounts(void)
{
	struct stat st;

	if (!own_mounts() || mkdirat(top, "out", 0700) != 0 || mkdirat(top, "b/e", 0700) != 0 ||
	    mkdirat(top, "b/e/f", 0700) != 0 || fchmodat(top, "out", 0755, 0) != 0) {
		return 1;
	}
	put_file("out/kept");
	if (mount("out", "b/c", "", MS_BIND, NULL) != 0 ||
	    mount("out", "b/e/f", "", MS_BIND, NULL) != 0) {
		return 2;
	}
	if (tree_remove(top, "b") == 0 || !is_there("b/c/kept") || !is_there("b/e/f/kept") ||
	    is_there("b/x")) {
		return 3;
	}
	return fstatat(top, "out", &st, 0) == 0 && (st.st_mode & 0777) == 0755 ? 0 : 4;
}

static void test_remove_keeps_mounts(void **state)
{
	assert_int_equal(in_child(with_a_mount), 0);
}

static void test_remove_keeps_bind_mounts(void **state)
{
	assert_int_equal(in_child(with_bind_mounts), 0);
}

/* If a directory is removed while its names are read, the kernel reports ENOENT. This must look
 * like the end of the list. */
static void test_names_of_a_removed_directory(void **state)
{
	struct entries e;
	char dir[] = "/tmp/test-entries-XXXXXX";

	assert_non_null(mkdtemp(dir));
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(rmdir(dir), 0);
	entries_init(&e, fd);
	errno = EBADF;
	assert_null(entries_next(&e));
	assert_int_equal(errno, 0);
	/* The control: any other error is reported. */
	auto_fd file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	entries_init(&e, file);
	assert_null(entries_next(&e));
	assert_int_equal(errno, ENOTDIR);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_walk),
		T(test_remove),
		T(test_remove_taken_names),
		T(test_remove_deep),
		T(test_remove_without_rights),
		T(test_remove_keeps_mounts),
		T(test_remove_keeps_bind_mounts),
		cmocka_unit_test(test_names_of_a_removed_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
