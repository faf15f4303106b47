/* test_follow.c - symlinks that no skill can have made are followed. The cases are in
 * tests/links.txt. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/file.h"
#include "os/tree.h"

#define USER 12345

static char base[64];
static unsigned cases;

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static uid_t id_of(const char *word)
{
	return strcmp(word, "USER") == 0 ? USER : 0;
}

static void make(const char *kind, const char *name, const char *owner, const char *more)
{
	if (strcmp(kind, "dir") == 0) {
		assert_int_equal(mkdir(at(name), 0700), 0);
		assert_int_equal(chmod(at(name), (mode_t)strtoul(more, NULL, 8)), 0);
	} else if (strcmp(kind, "file") == 0) {
		auto_fd fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
	} else {
		assert_int_equal(symlink(more, at(name)), 0);
	}
	assert_int_equal(lchown(at(name), id_of(owner), 0), 0);
}

static void check(const char *name, const char *wanted)
{
	auto_free char *found = file_follow_fixed(at(name));
	auto_free char *real = strdup(at("real/f"));

	cases++;
	if ((strcmp(found, real) == 0) != (strcmp(wanted, "yes") == 0)) {
		print_error("%s, uid %u: %s\n", name, geteuid(), found);
		_exit(1);
	}
}

/* Reads tests/links.txt. With `making`, makes the files that it names; otherwise checks the cases
 * for the calling user. */
static void read_table(bool making)
{
	char path[512], line[256];

	snprintf(path, sizeof(path), "%s/tests/links.txt", getenv("SSB_SOURCE"));
	auto_file f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		char word[4][64] = { "", "", "", "" };
		if (line[0] == '#' ||
		    sscanf(line, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]) < 2) {
			continue;
		}
		bool is_case = strcmp(word[0], "case") == 0;
		if (is_case && !making) {
			check(word[1], word[geteuid() == 0 ? 3 : 2]);
		} else if (!is_case && making) {
			make(word[0], word[1], word[2], word[3]);
		}
	}
}

static int check_as(uid_t uid)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		if (setresuid(uid, uid, uid) != 0) {
			_exit(2);
		}
		read_table(false);
		_exit(cases > 10 ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_table(void **state)
{
	if (geteuid() != 0) {
		skip(); /* only root can make files that belong to root */
	}
	snprintf(base, sizeof(base), "/tmp/ssb-follow-XXXXXX");
	assert_non_null(mkdtemp(base));
	assert_int_equal(chmod(base, 0755), 0);
	read_table(true);
	assert_int_equal(check_as(USER), 0);
	assert_int_equal(check_as(0), 0);
	assert_int_equal(tree_remove(AT_FDCWD, base), 0);
}

/* A symlink directly in "/" is followed. A path that is too long is returned unchanged. */
static void test_edges(void **state)
{
	char to[256], path[512], wanted[1024];
	ssize_t n = readlink("/bin", to, sizeof(to) - 1);
	char *much = calloc(1, 8192);

	to[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "/bin/no-such-file");
	snprintf(wanted, sizeof(wanted), "%s%s/no-such-file", n > 0 && to[0] == '/' ? "" : "/",
	         n > 0 ? to : "bin");
	auto_free char *found = file_follow_fixed(path);
	assert_string_equal(found, wanted);
	auto_free char *root = file_follow_fixed("/");
	assert_string_equal(root, "/");
	assert_non_null(much);
	memset(much, 'a', 8000);
	much[0] = '/';
	auto_free char *same = file_follow_fixed(much);
	assert_string_equal(same, much);
	free(much);
}

/* The function opens only a path that is already in the form of realpath(). It refuses every other
 * spelling, and its caller then uses realpath(). */
static void test_open_real(void **state)
{
	static const struct {
		/* appended to a new directory, which contains "a/b" and a symlink "link" to "a" */
		const char *rest;
		bool opened;
	} CASES[] = {
		{ "", true },       { "/a", true },         { "/a/b", true },
		{ "/a/...", true }, { "/link", false },     { "/link/b", false },
		{ "/a/", false },   { "//a", false },       { "/./a", false },
		{ "/a/.", false },  { "/a/..", false },     { "/a/../a/b", false },
		{ "/none", false }, { "/a/b/none", false },
	};
	char dir[] = "/tmp/test-open-real-XXXXXX";
	char path[256];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(mkdir("a/b", 0700), 0);
	assert_int_equal(mkdir("a/...", 0700), 0);
	assert_int_equal(symlink("a", "link"), 0);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, CASES[i].rest);
		auto_fd fd = file_open_real(path, O_PATH);
		auto_free char *real = realpath(path, NULL);
		if ((fd >= 0) != CASES[i].opened || (fd >= 0 && strcmp(real, path) != 0)) {
			fail_msg("'%s': fd %d, real path '%s'", CASES[i].rest, fd, real);
		}
	}
	assert_int_equal(file_open_real("a", O_PATH), -1);
	assert_int_equal(file_open_real("", O_PATH), -1);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(tree_remove(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table),
		                            cmocka_unit_test(test_edges),
		                            cmocka_unit_test(test_open_real) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
