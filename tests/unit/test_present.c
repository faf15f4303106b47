/* test_present.c - a quick look at a directory: which of the protected names may be in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/tree.h"
#include "sandbox/present.h"

static char top[64];
static int dir = -1;

static int world(void **state)
{
	snprintf(top, sizeof(top), "/tmp/ssb-present-XXXXXX");
	if (mkdtemp(top) == NULL) {
		return -1;
	}
	dir = open(top, O_PATH | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int world_end(void **state)
{
	own_close(&dir);
	return tree_remove(AT_FDCWD, top);
}

static void make(const char *name)
{
	auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
}

static bool has(const char *name, bool gitdir)
{
	struct present present;
	size_t i = 0;

	assert_int_equal(present_list(dir, gitdir, &present), 0);
	while (i < PROTECTED_COUNT && strcmp(PROTECTED[i].name, name) != 0) {
		i++;
	}
	assert_true(i < PROTECTED_COUNT);
	return present.name[i];
}

static size_t count(bool gitdir)
{
	struct present present;
	size_t n = 0;

	assert_int_equal(present_list(dir, gitdir, &present), 0);
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		n += present.name[i];
	}
	return n;
}

static void by_their_first_parts(void **state)
{
	make("other");
	make(".git2");
	make(".gi");
	assert_int_equal(count(false), 0);
	make(".git");
	assert_true(has(".git/hooks", false) && has(".git/config", false));
	assert_false(has(".gitmodules", false) || has(".git/hooks", true));
	make(".config");
	assert_true(has(".config/git", false) && has(".config/nvim", false));
	make("CLAUDE.md");
	assert_true(has("CLAUDE.md", false));
	assert_false(has("CLAUDE.local.md", false));
	make("hooks");
	assert_true(has(".git/hooks", true));
	assert_int_equal(count(true), 1);
}

/* A name in another letter case counts, too: some file systems ignore the case. */
static void in_another_case(void **state)
{
	make(".ENVRC");
	assert_true(has(".envrc", false));
	assert_int_equal(count(false), 1);
	make(".hu\xc5\xbfky"); /* U+017F, the long s: some file systems treat it as "s" */
	assert_true(has(".husky", false));
	assert_int_equal(count(false), PROTECTED_COUNT);
}

static void too_many_names(void **state)
{
	char name[16];

	for (int i = 0; i < MAX_LISTED_NAMES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		make(name);
	}
	assert_int_equal(count(false), 0);
	make("one-more");
	assert_int_equal(count(false), PROTECTED_COUNT);
	/* In a git directory, only the protected names that begin with ".git/" matter. */
	assert_true(has(".git/hooks", true));
	assert_false(has(".envrc", true));
}

static void closed(void **state)
{
	struct present present;

	if (geteuid() != 0) {
		assert_int_equal(chmod(top, 0300), 0);
		assert_int_equal(count(false), PROTECTED_COUNT);
		assert_int_equal(chmod(top, 0700), 0);
	}
	assert_int_equal(present_list(-1, false, &present), -1);
	assert_int_equal(errno, EBADF);
}

/* The directory has more entries than one getdents64() returns: each entry is returned once, and
 * "." and ".." are not. */
static void every_entry(void **state)
{
	enum { COUNT = 1000 };
	static bool seen[COUNT];
	const struct dirent64 *e;
	struct entries names;
	char name[64];

	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "%03d-with-a-name-of-some-length", i);
		make(name);
	}
	auto_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entries_init(&names, fd);
	for (int n = 0; (e = entries_next(&names)) != NULL; n++) {
		long i = strtol(e->d_name, NULL, 10);
		assert_true(n < COUNT && i >= 0 && i < COUNT && !seen[i]);
		seen[i] = true;
	}
	assert_int_equal(errno, 0);
	for (int i = 0; i < COUNT; i++) {
		assert_true(seen[i]);
	}
	entries_init(&names, dir); /* an O_PATH descriptor, which cannot be read */
	assert_null(entries_next(&names));
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_their_first_parts, world, world_end),
		cmocka_unit_test_setup_teardown(in_another_case, world, world_end),
		cmocka_unit_test_setup_teardown(too_many_names, world, world_end),
		cmocka_unit_test_setup_teardown(closed, world, world_end),
		cmocka_unit_test_setup_teardown(every_entry, world, world_end),
	};

	return cmocka_run_group_tests_name("present", tests, NULL, NULL);
}
