/* test_snapshot_tree.c - the copy of a directory that cannot be idmapped. Root makes the copy.
 * Meanwhile, other users may change the directory, and its file system may list any names. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/file.h"
#include "sandbox/sources.h"

static char top[] = "/tmp/ssb-snapshot-XXXXXX";
static char from[64], victim[64];
static bool twice; /* readdir() returns "x" twice, and "x" is another file the second time */

struct dirent64 *__real_readdir64(DIR *d);
struct dirent64 *__wrap_readdir64(DIR *d);

static void put(const char *path, const char *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

struct dirent64 *__wrap_readdir64(DIR *d)
{
	static struct dirent64 last;

	if (twice && strcmp(last.d_name, "x") == 0) {
		char path[96];
		twice = false;
		snprintf(path, sizeof(path), "%s/x", from);
		assert_int_equal(unlink(path), 0);
		put(path, "evil");
		return &last;
	}
	struct dirent64 *e = __real_readdir64(d);
	if (e != NULL) {
		memcpy(&last, e, e->d_reclen);
	}
	return e;
}

static int setup(void **state)
{
	if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
	    mkdtemp(top) == NULL) {
		return -1;
	}
	snprintf(from, sizeof(from), "%s/from", top);
	snprintf(victim, sizeof(victim), "%s/victim", top);
	return mkdir(from, 0700);
}

static int teardown(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/x", from);
	(void)unlink(path);
	(void)rmdir(from);
	(void)unlink(victim);
	return rmdir(top);
}

static int copy(struct ssb_error *err)
{
	auto_fd dir = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	return snapshot_tree(dir, from, err);
}

static void name_that_comes_twice(void **state)
{
	struct ssb_error err = { 0 };
	char path[96], text[16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/x", from);
	put(victim, "good");
	assert_int_equal(symlink(victim, path), 0);
	auto_fd control = copy(&err);
	assert_true(control >= 0);
	assert_int_equal(fstatat(control, "x", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	twice = true;
	auto_fd tree = copy(&err);
	assert_false(twice);
	auto_fd fd = open(victim, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_memory_equal(text, "good", 4);
	assert_int_equal(tree, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_that_comes_twice),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
