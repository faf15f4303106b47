/* test_approval_copy.c - the copy from which an approved skill runs: files of version control
 * beside the skill, empty directories, and a damaged copy. */
#include "approval_world.h"

#include "consent/diff.h"
#include "consent/lock_json.h"

static bool has(const struct skill_files *p, const char *path)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->v[i].path, path) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- version control ------------------------------------------------------------- */

static void fill_version_control(void)
{
	make_dir(".git");
	make_dir(".hg");
	make_dir("sub");
	make_dir("sub/.git");
	put(".git/index", "one");
	put(".git/code.py", "print()");
	put(".svn", "a file of that name");
	put("sub/.git/x", "x");
	put(".gitignore", "x");
}

/* Directories of version control at the top of a skill are neither approved nor copied. Further
 * down in the skill, directories with the same names are approved and copied. */
static void version_control_is_left_out(void **state)
{
	AUTO(skill_files_done) struct skill_files before = { 0 };
	AUTO(skill_files_done) struct skill_files after = { 0 };
	struct stat st;
	char path[512];

	fill_version_control();
	read_files(&before);
	assert_int_equal(before.n, 3);
	assert_true(has(&before, "sub/.git/x") && has(&before, ".gitignore"));
	make_copy(&before);
	auto_free char *copy = snapshot_path(&owner, &before);
	snprintf(path, sizeof(path), "%s/.git", copy);
	assert_int_equal(lstat(path, &st), -1);
	snprintf(path, sizeof(path), "%s/sub/.git/x", copy);
	assert_int_equal(lstat(path, &st), 0);
	put(".git/index", "other");
	put(".git/new", "");
	read_files(&after);
	assert_memory_equal(before.tree, after.tree, SHA256_BYTES);
	skill_files_done(&after);
	put("sub/.git/x", "y"); /* the control */
	read_files(&after);
	assert_memory_not_equal(before.tree, after.tree, SHA256_BYTES);
}

/* A skill that is too large for a copy runs from its own directory, where it sees .git: so the
 * approval covers .git, too. The test uses the largest size that is copied, and one byte more. */
static void version_control_counts_without_a_copy(void **state)
{
	const off_t rest = (off_t)strlen(MANIFEST) + 2; /* 2 bytes: sub/.git/x and .gitignore */

	fill_version_control();
	for (int past = 0; past < 2; past++) {
		AUTO(skill_files_done) struct skill_files p = { 0 };
		AUTO(skill_files_done) struct skill_files after = { 0 };
		large("big", (off_t)SNAPSHOT_BYTES - rest + past);
		put(".git/index", "one");
		read_files(&p);
		assert_int_equal(has(&p, ".git/index"), past);
		assert_int_equal(has(&p, ".svn"), past);
		assert_int_equal(has(&p, ".hg"), past);
		put(".git/index", "two");
		read_files(&after);
		assert_int_equal(memcmp(p.tree, after.tree, SHA256_BYTES) != 0, past);
	}
}

/* ---- empty directories ----------------------------------------------------------- */

static void empty_directories_count(void **state)
{
	AUTO(skill_files_done) struct skill_files none = { 0 };
	AUTO(skill_files_done) struct skill_files p = { 0 };
	AUTO(diff_done) struct diff d = { 0 };
	AUTO(lock_done) struct lock back = { 0 };
	char path[512];
	struct stat st;
	auto_buf text;

	read_files(&none);
	make_dir("a");
	make_dir("a/out");
	read_files(&p);
	assert_int_equal(p.n, 2);
	assert_true(p.v[1].dir && strcmp(p.v[1].path, "a/out") == 0);
	assert_memory_not_equal(none.tree, p.tree, SHA256_BYTES);
	make_copy(&p);
	auto_free char *copy = snapshot_path(&owner, &p);
	snprintf(path, sizeof(path), "%s/a/out", copy);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode) && snapshot_there(&owner, &p));
	/* The approval's file contains the empty directory. After reading it back, the directory is
	 * not mistaken for an empty file. */
	char words[][28] = { "/s", "n", "2026-11-15T13:20:00.123456Z", "b" };
	const struct lock l = { .skill = words[0],
		                .name = words[1],
		                .format = SKILL_DECLARED,
		                .at = words[2],
		                .by = words[3],
		                .files = p,
		                .uses = -1 };
	buf_init(&text, MAX_LOCK_BYTES);
	lock_write(&text, &l);
	assert_null(lock_parse(text.data, text.len, &back));
	assert_true(back.files.v[1].dir);
	assert_int_equal(rmdir(in_skill("a/out")), 0);
	put("a/out", "");
	assert_int_equal(chmod(in_skill("a/out"), SKILL_DIR_MODE), 0);
	skill_files_done(&none);
	read_files(&none);
	assert_memory_not_equal(none.tree, p.tree, SHA256_BYTES);
	assert_int_equal(diff_make(&back, &none, NULL, &d), 0);
	assert_int_equal(d.n_files, 1);
	assert_int_equal(d.files[0].change, CHANGE_CONTENT);
}

/* ---- a damaged copy -------------------------------------------------------------- */

static char copied[512];

static const char *in_copy(const char *name)
{
	static char path[1024];

	snprintf(path, sizeof(path), "%s/%s", copied, name);
	return path;
}

static void cut_one(void)
{
	assert_int_equal(truncate(in_copy("a/x"), 1), 0);
}

static void remove_file(void)
{
	assert_int_equal(unlink(in_copy("a/x")), 0);
}

static void add_one(void)
{
	auto_fd fd = open(in_copy("a/more"), O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	assert_true(fd >= 0);
}

static void add_directory(void)
{
	assert_int_equal(mkdir(in_copy("more"), 0755), 0);
	assert_int_equal(chmod(in_copy("more"), 0555), 0);
}

static void other_mode(void)
{
	assert_int_equal(chmod(in_copy("a/x"), 0555), 0);
}

static void other_link(void)
{
	assert_int_equal(unlink(in_copy("l")), 0);
	assert_int_equal(symlink("SKILL.md", in_copy("l")), 0);
}

static void link_for_file(void)
{
	assert_int_equal(unlink(in_copy("a/x")), 0);
	assert_int_equal(symlink("../SKILL.md", in_copy("a/x")), 0);
}

static void writable(void)
{
	assert_int_equal(chmod(in_copy("a"), 0755), 0);
}

static void no_empty_directory(void)
{
	assert_int_equal(rmdir(in_copy("out")), 0);
}

static void other_owner(void)
{
	assert_int_equal(lchown(in_copy("a/x"), 12345, 12345), 0);
}

static void other_owner_of_all(void)
{
	assert_int_equal(lchown(copied, 12345, 12345), 0);
}

static const struct {
	const char *what;
	void (*damage)(void);
	bool root; /* only root can do this damage */
} DAMAGES[] = {
	{ "a size", cut_one, false },
	{ "a file is gone", remove_file, false },
	{ "a file more", add_one, false },
	{ "a directory more", add_directory, false },
	{ "a mode", other_mode, false },
	{ "a link", other_link, false },
	{ "a link for a file", link_for_file, false },
	{ "a directory that can be written", writable, false },
	{ "an empty directory is gone", no_empty_directory, false },
	{ "another owner", other_owner, true },
	{ "another owner of all", other_owner_of_all, true },
};

/* Each kind of damage to the copy is noticed. Then a new, complete copy is made from the same
 * files. */
static void damaged_copies_do_not_count(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct stat st;

	make_dir("a");
	make_dir("out");
	put("a/x", "bytes");
	put("a.b", "");
	assert_int_equal(symlink("a/x", in_skill("l")), 0);
	read_files(&p);
	make_copy(&p);
	auto_free char *path = snapshot_path(&owner, &p);
	snprintf(copied, sizeof(copied), "%s", path);
	for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
		if (DAMAGES[i].root && geteuid() != 0) {
			continue;
		}
		assert_true(snapshot_there(&owner, &p));
		assert_int_equal(chmod(copied, 0755), 0);
		assert_int_equal(chmod(in_copy("a"), 0755), 0);
		assert_int_equal(chmod(in_copy("a/x"), 0644), 0);
		DAMAGES[i].damage();
		if (DAMAGES[i].damage != other_mode && access(in_copy("a/x"), F_OK) == 0) {
			assert_int_equal(chmod(in_copy("a/x"), 0444), 0);
		}
		if (DAMAGES[i].damage != writable) {
			assert_int_equal(chmod(in_copy("a"), 0555), 0);
		}
		assert_int_equal(chmod(copied, 0555), 0);
		if (snapshot_there(&owner, &p)) {
			fail_msg("not noticed: %s", DAMAGES[i].what);
		}
		make_copy(&p);
		assert_int_equal(stat(in_copy("a/x"), &st), 0);
		assert_true(st.st_size == 5 && st.st_uid == geteuid());
	}
	assert_true(snapshot_there(&owner, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(version_control_is_left_out),
		T(version_control_counts_without_a_copy),
		T(empty_directories_count),
		T(damaged_copies_do_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
