/* A walk sees everything once, in order, follows nothing, and ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
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

	(void)state;
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
	static const char *const files[] = { "a", "b/x", "b/c/y", ".git/config", "b/loop" };
	char path[64], dir[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)unlinkat(top, files[i], 0);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", top);
	ssize_t n = readlink(path, dir, sizeof(dir) - 1);
	dir[n > 0 ? n : 0] = '\0';
	(void)unlinkat(top, "b/c", AT_REMOVEDIR);
	(void)unlinkat(top, "b", AT_REMOVEDIR);
	(void)unlinkat(top, ".git", AT_REMOVEDIR);
	return rmdir(dir);
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

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		auto_buf out;
		buf_init(&out, 4096);
		buf_adds(&out, "");
		assert_int_equal(tree_walk(top, &v[i].caps, note, &out), v[i].whole);
		if (v[i].seen != NULL) {
			assert_string_equal(out.data, v[i].seen);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_walk, make,
		                                                            unmake) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
