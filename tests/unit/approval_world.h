/* approval_world.h - a skill with one file, its approval, and the copy of the skill. */
#ifndef TESTS_APPROVAL_WORLD_H
#define TESTS_APPROVAL_WORLD_H

#include "consent_world.h"

#define MANIFEST "a skill"

static inline int setup_skill(void **state)
{
	int failed = setup(state);

	put("SKILL.md", MANIFEST);
	return failed;
}

static inline void make_dir(const char *name)
{
	assert_int_equal(mkdir(in_skill(name), 0755), 0);
}

static inline void read_files(struct skill_files *ret)
{
	struct ssb_error err = { 0 };

	if (lock_files_read(skill, ret, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static inline void make_copy(const struct skill_files *p)
{
	struct ssb_error err = { 0 };
	bool kept = false;

	if (snapshot_make(&owner, skill, p, &kept, &err) != 0 || !kept) {
		fail_msg("%s", err.text);
	}
}

static inline void large(const char *name, off_t size)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(posix_fallocate(fd, 0, size), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup_skill, teardown)

#endif
