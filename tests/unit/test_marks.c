/* test_marks.c - a skill that runs from its own directory: a change during the run is noticed, even
 * if every byte, name, mode and time is put back. */
#include "unit.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "consent/consent.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/tree.h"

static char top[64];
static char skill[80];
static struct owner owner;
static struct consent_found found;
static struct grant shown;
static struct ssb_plan plan;
static struct plan_approval approval;
static char manifest[96];

static const char *in_skill(const char *name)
{
	static char paths[2][512];
	static unsigned turn;

	turn ^= 1;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", skill, name);
	return paths[turn];
}

static void put(const char *name, const char *text)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

/* Approves the skill as if it were too large for a copy. */
static void approve(void)
{
	struct ssb_error err = { 0 };
	char text[DIGEST_TEXT];

	snprintf(manifest, sizeof(manifest), "%s/SKILL.md", skill);
	assert_int_equal(lock_files_read(skill, &found.lock.files, &err), 0);
	found.lock.format = SKILL_MARKDOWN;
	found.lock.by = strdup("a test");
	found.lock.at = strdup("now");
	found.state = CONSENT_HOLDS;
	shown = (struct grant){ .origin = ORIGIN_SKILL,
		                .is_dir = true,
		                .fd = open(skill, O_PATH | O_DIRECTORY | O_CLOEXEC) };
	plan = (struct ssb_plan){ .skill_dir = skill,
		                  .format = SKILL_MARKDOWN,
		                  .manifest = manifest,
		                  .grants = &shown,
		                  .n_grants = 1 };
	sha256("a skill", strlen("a skill"), plan.manifest_digest);
	memcpy(found.lock.manifest, plan.manifest_digest, sizeof(found.lock.manifest));
	assert_true(consent_fits(&found.lock, &plan));
	approval.tree = strdup(digest_text(found.lock.files.tree, text));
	plan.approved = &approval;
}

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/ssb-marks-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(skill, sizeof(skill), "%s/skill", top);
	assert_int_equal(mkdir(skill, 0755), 0);
	assert_int_equal(mkdir(in_skill("lib"), 0755), 0);
	put("SKILL.md", "a skill");
	put("lib/code.py", "good");
	put("lib/other.py", "more");
	assert_int_equal(symlink("code.py", in_skill("lib/link")), 0);
	owner = (struct owner){ .uid = getuid(), .gid = getgid(), .home = top, .state_dir = top };
	approve();
	return 0;
}

static int teardown(void **state)
{
	consent_found_done(&found);
	free(approval.tree);
	own_close(&shown.fd);
	return tree_remove(AT_FDCWD, top);
}

/* ---- changes during a run --------------------------------------------------------- */

static void nothing(void)
{
}

static void read_it(void)
{
	char text[8];
	auto_fd fd = open(in_skill("lib/code.py"), O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, text, sizeof(text)), 4);
}

/* Changes a file, and restores its bytes and times (like touch -r). */
static void rewrite(void)
{
	struct stat st;

	assert_int_equal(stat(in_skill("lib/code.py"), &st), 0);
	put("lib/code.py", "evil");
	put("lib/code.py", "good");
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	assert_int_equal(utimensat(AT_FDCWD, in_skill("lib/code.py"), times, 0), 0);
}

/* Calls `act`, and then restores the times of the file or directory `name`. */
static void with_times_of(const char *name, void (*act)(void))
{
	struct stat st;

	assert_int_equal(stat(in_skill(name), &st), 0);
	act();
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	assert_int_equal(utimensat(AT_FDCWD, in_skill(name), times, 0), 0);
}

static void there_and_back(void)
{
	assert_int_equal(rename(in_skill("lib/code.py"), in_skill("lib/away")), 0);
	put("lib/code.py", "evil");
	assert_int_equal(rename(in_skill("lib/away"), in_skill("lib/code.py")), 0);
}

static void move(void)
{
	with_times_of("lib", there_and_back);
}

static void swap_links(void)
{
	assert_int_equal(unlink(in_skill("lib/link")), 0);
	assert_int_equal(symlink("other.py", in_skill("lib/link")), 0);
	assert_int_equal(unlink(in_skill("lib/link")), 0);
	assert_int_equal(symlink("code.py", in_skill("lib/link")), 0);
}

static void shadow(void)
{
	put("lib/json.py", "evil");
	assert_int_equal(unlink(in_skill("lib/json.py")), 0);
}

static void add_module(void)
{
	with_times_of("lib", shadow);
}

static void move_directory(void)
{
	assert_int_equal(rename(in_skill("lib"), in_skill("away")), 0);
	assert_int_equal(mkdir(in_skill("lib"), 0755), 0);
	assert_int_equal(rmdir(in_skill("lib")), 0);
	assert_int_equal(rename(in_skill("away"), in_skill("lib")), 0);
}

static void make_executable(void)
{
	assert_int_equal(chmod(in_skill("SKILL.md"), 0755), 0);
	assert_int_equal(chmod(in_skill("SKILL.md"), 0644), 0);
}

static void leave_one(void)
{
	put("lib/new.py", "evil");
}

static void take_one(void)
{
	assert_int_equal(unlink(in_skill("lib/other.py")), 0);
}

static const struct {
	void (*act)(void);
	const char *named; /* the name that must be reported; NULL: no change must be reported */
} ACTS[] = {
	{ nothing, NULL },
	{ read_it, NULL },
	{ rewrite, "'lib/code.py'" },
	{ move, "'lib/code.py'" },
	{ swap_links, "'lib/link'" },
	{ add_module, "'lib'" },
	{ move_directory, "'lib'" },
	{ make_executable, "'SKILL.md'" },
	{ leave_one, "'lib/new.py'" },
	{ take_one, "'lib/other.py'" },
};

/* Checks the skill as at the end of its run. Fails the test unless a change of `named` is reported
 * or, if NULL, no change. */
static void ends(struct marks *seen, const char *named)
{
	struct ssb_error err = { 0 };
	int failed = consent_still(&plan, seen, &err);

	assert_int_equal(failed, named != NULL ? -1 : 0);
	if (named != NULL && (strstr(err.text, named) == NULL ||
	                      strstr(err.text, "changed during the run") == NULL)) {
		fail_msg("'%s' is not in: %s", named, err.text);
	}
}

static void what_was_put_back(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(ACTS); i++) {
		AUTO(marks_done) struct marks seen = { 0 };
		struct ssb_error err = { 0 };

		if (i > 0) {
			(void)setup(state);
		}
		assert_int_equal(consent_still(&plan, &seen, &err), 0);
		ACTS[i].act();
		ends(&seen, ACTS[i].named);
		(void)teardown(state);
	}
	(void)setup(state);
}

/* The check looks at the directory that the sandbox has opened, even if another directory now has
 * its name. */
static void another_in_its_place(void **state)
{
	AUTO(marks_done) struct marks seen = { 0 };
	struct ssb_error err = { 0 };
	char away[96];

	snprintf(away, sizeof(away), "%s/away", top);
	assert_int_equal(rename(skill, away), 0);
	assert_int_equal(mkdir(skill, 0755), 0);
	assert_int_equal(consent_still(&plan, &seen, &err), 0);
	assert_int_equal(rmdir(skill), 0);
	assert_int_equal(rename(away, skill), 0);
	ends(&seen, "'.'");
}

/* A file changed just before the run. A second change within the same tick of the clock would leave
 * the same time, so the check before the run waits for the next tick. */
static void changed_just_before(void **state)
{
	for (int i = 0; i < 20; i++) {
		AUTO(marks_done) struct marks seen = { 0 };
		struct ssb_error err = { 0 };
		put("SKILL.md", "a skill");
		assert_int_equal(consent_still(&plan, &seen, &err), 0);
		put("SKILL.md", "a Skill");
		put("SKILL.md", "a skill");
		ends(&seen, "'SKILL.md'");
	}
}

/* A file that is mapped for writing is refused, because writing to the memory does not change its
 * time. */
static void mapped_before(void **state)
{
	AUTO(marks_done) struct marks seen = { 0 };
	struct ssb_error err = { 0 };
	int fd = open(in_skill("lib/code.py"), O_RDWR | O_CLOEXEC);
	char *bytes = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(bytes, MAP_FAILED);
	(void)close(fd);
	bytes[0] = 'g';
	assert_int_equal(consent_still(&plan, &seen, &err), -1);
	assert_non_null(strstr(err.text, "'lib/code.py' is open for writing"));
	assert_int_equal(munmap(bytes, 4), 0);
	err = (struct ssb_error){ 0 };
	assert_int_equal(consent_still(&plan, &seen, &err), 0); /* the control */
	ends(&seen, NULL);
}

static void how_young(void **state)
{
	const int64_t now = clock_wall_us() * 1000;
	const struct {
		int64_t ago;
		bool young;
	} rows[] = { { 5000000, true }, { 3000000000, false }, { -60000000000, false } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stat st = { .st_ctim = { .tv_sec = (now - rows[i].ago) / 1000000000,
			                        .tv_nsec = (now - rows[i].ago) % 1000000000 | 1 } };
		assert_int_equal(mark_young(&st) > 0, rows[i].young);
	}
	/* On a file system with times in whole seconds, a file that is almost a second old is still
	 * young. */
	struct stat st = { .st_ctim = { .tv_sec = now / 1000000000 } };
	assert_true(mark_young(&st) > 900000000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_was_put_back), T(another_in_its_place),     T(changed_just_before),
		T(mapped_before),     cmocka_unit_test(how_young),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
