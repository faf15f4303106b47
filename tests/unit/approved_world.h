/* approved_world.h - a skill of one file, and the state directory of its owner beside it. */
#ifndef TESTS_APPROVED_WORLD_H
#define TESTS_APPROVED_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lock.h"
#include "os/file.h"
#include "policy/owner.h"

#define MANIFEST "a skill"

static char top[64];
static char skill[80];
static char *environment[] = { NULL };
static struct owner owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_D ? chmod(path, 0700) : 0;
}

static const char *in_skill(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", skill, name);
	return path;
}

static void put(const char *name, const char *text)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(in_skill(name), 0755), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "%s/ssb-approved-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(top));
	snprintf(skill, sizeof(skill), "%s/skill", top);
	assert_int_equal(mkdir(skill, 0755), 0);
	put("SKILL.md", MANIFEST);
	owner = (struct owner){ .uid = getuid(),
		                .gid = getgid(),
		                .home = top,
		                .state_dir = top,
		                .environ = environment };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)nftw(top, open_up, 16, FTW_PHYS);
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void read_files(struct pinned *ret)
{
	struct ssb_error err = { 0 };

	if (pinned_read(skill, ret, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static void make_copy(const struct pinned *p)
{
	struct ssb_error err = { 0 };
	bool kept = false;

	if (snapshot_make(&owner, skill, p, &kept, &err) != 0 || !kept) {
		fail_msg("%s", err.text);
	}
}

static void large(const char *name, off_t size)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(posix_fallocate(fd, 0, size), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
