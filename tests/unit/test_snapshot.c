/* test_snapshot.c - the stored copy of a skill's bytes. */
#include "consent_world.h"

#include <time.h>

#include "policy/path.h"

static void make_copy(struct skill_files *p, bool *ret_kept)
{
	struct ssb_error err = { 0 };

	assert_int_equal(lock_files_read(skill, p, &err), 0);
	if (snapshot_make(&owner, skill, p, ret_kept, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static void copy_is_the_same(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	AUTO(skill_files_done) struct skill_files copy = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	bool kept = false;

	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "bytes");
	assert_int_equal(chmod(in_skill("a/x"), 0700), 0);
	assert_int_equal(symlink("a/x", in_skill("l")), 0);
	make_copy(&p, &kept);
	assert_true(kept);
	auto_free char *path = snapshot_path(&owner, &p);
	assert_int_equal(lock_files_read(path, &copy, &err), 0);
	assert_int_equal(copy.n, p.n);
	assert_memory_equal(copy.v[0].sha256, p.v[0].sha256, SHA256_BYTES);
	assert_int_equal(copy.v[0].mode, 0500);
	assert_string_equal(copy.v[1].link, "a/x");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	skill_files_done(&copy);
	make_copy(&copy, &kept); /* making it again succeeds: the copy exists */
}

/* If a file has changed after it was hashed, making the copy fails, and no part of the copy
 * remains. */
static void copy_of_other_bytes(void **state)
{
	static const char *const CHANGES[] = { "BYTES", "more than there was", "", NULL };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
		AUTO(skill_files_done) struct skill_files p = { 0 };
		struct ssb_error err = { 0 };
		bool kept = false;
		put("b", "bytes");
		assert_int_equal(lock_files_read(skill, &p, &err), 0);
		if (CHANGES[i] != NULL) {
			put("b", CHANGES[i]);
		} else {
			assert_int_equal(unlink(in_skill("b")), 0);
		}
		assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), -1);
		assert_int_equal(err.code, SSB_E_POLICY);
		auto_free char *path = snapshot_path(&owner, &p);
		assert_int_equal(stat(path, &st), -1);
	}
	AUTO(skill_files_done) struct skill_files p = { 0 };
	bool kept = false;
	make_copy(&p, &kept); /* the control: the files are as they were hashed */
	assert_true(kept);
}

/* If a directory was replaced by a symlink after it was read, making the copy fails. */
static void copy_through_a_link(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };
	bool kept = false;
	char other[96];

	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "bytes");
	assert_int_equal(lock_files_read(skill, &p, &err), 0);
	snprintf(other, sizeof(other), "%s/other", top);
	assert_int_equal(rename(in_skill("a"), other), 0);
	assert_int_equal(symlink("../other", in_skill("a")), 0);
	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
}

static void copy_has_a_cap(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { .bytes = SNAPSHOT_BYTES + 1 };
	struct ssb_error err = { 0 };
	bool kept = true;

	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), 0);
	assert_false(kept);
	p.bytes = SNAPSHOT_BYTES;
	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), 0);
	assert_true(kept);
}

static void make_old(const char *path)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void swept_when_idle(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	bool kept = false;

	put("b", "bytes");
	make_copy(&p, &kept);
	auto_free char *path = snapshot_path(&owner, &p);
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), 0); /* the copy is not old enough to be removed */
	make_old(path);
	assert_true(snapshot_there(&owner, &p)); /* this use sets the copy's time anew */
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	make_old(path);
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), -1);
}

static bool is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* Runs remove old copies once a day. If the stored time of the last removal is in the future, they
 * remove them now. */
static void tidied_once_a_day(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	bool kept = false;

	put("b", "bytes");
	make_copy(&p, &kept);
	auto_free char *path = snapshot_path(&owner, &p);
	auto_free char *mark = path_join(owner.state_dir, "snapshots.swept");
	make_old(path);
	snapshot_tidy(&owner);
	assert_false(is_there(path));
	skill_files_done(&p);
	make_copy(&p, &kept);
	make_old(path);
	snapshot_tidy(&owner);
	assert_true(is_there(path)); /* not again today */
	make_old(mark);
	snapshot_tidy(&owner);
	assert_false(is_there(path));
	skill_files_done(&p);
	make_copy(&p, &kept);
	make_old(path);
	const struct timespec ahead[2] = { { .tv_sec = INT32_MAX }, { .tv_sec = INT32_MAX } };
	assert_int_equal(utimensat(AT_FDCWD, mark, ahead, 0), 0);
	snapshot_tidy(&owner);
	assert_false(is_there(path));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(copy_is_the_same), T(copy_of_other_bytes), T(copy_through_a_link),
		T(copy_has_a_cap),   T(swept_when_idle),     T(tidied_once_a_day),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
