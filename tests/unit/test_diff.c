/* test_diff.c - the changes of a skill since its approval. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/diff.h"

#define FILE_OF(p, c, m)                                                                           \
	{                                                                                          \
		.path = (char *)(uintptr_t)(p), .size = 1, .mode = (m), .sha256 = { c }            \
	}

static struct string_list items(char **v)
{
	size_t n = 0;

	while (v[n] != NULL) {
		n++;
	}
	return (struct string_list){ v, n };
}

static char *text_of(const struct diff *d)
{
	struct buf out = BUF(1UL << 20);

	diff_text(&out, d, false, MAX_SHOWN_FILES);
	return buf_steal(&out);
}

static void test_files(void **state)
{
	struct skill_file old[] = { FILE_OF("a", 1, 0644), FILE_OF("b", 1, 0644),
		                    FILE_OF("c", 1, 0644), FILE_OF("e", 1, 0644) };
	struct skill_file new[] = { FILE_OF("a", 1, 0644), FILE_OF("b", 2, 0644),
		                    FILE_OF("c", 1, 0755), FILE_OF("d\nx", 1, 0755) };
	struct lock lock = { .files = { .v = old, .n = 4 } };
	struct skill_files now = { .v = new, .n = 4 };
	AUTO(diff_done) struct diff d = { 0 };

	assert_int_equal(diff_make(&lock, &now, NULL, &d), 0);
	assert_false(d.same);
	assert_int_equal(d.n_files, 4);
	assert_int_equal(d.files[0].change, CHANGE_MODE);
	assert_int_equal(d.files[1].change, CHANGE_ADDED);
	assert_int_equal(d.files[2].change, CHANGE_CONTENT);
	assert_int_equal(d.files[3].change, CHANGE_REMOVED);
	auto_free char *text = text_of(&d);
	assert_string_equal(text, "4 files have changed since you approved the skill:\n"
	                          "  ~ c: its mode changed, mode 644 to 755, can be executed\n"
	                          "  + \"d\\nx\": new, can be executed\n"
	                          "  ~ b: changed, 1 to 1 bytes\n"
	                          "  - e: removed\n");
}

/* Executable files and code are listed before files that are only read, whatever their names
 * are. */
static void test_order(void **state)
{
	struct skill_file new[] = {
		FILE_OF("a.txt", 1, 0644),
		FILE_OF("b.PY", 1, 0644),
		FILE_OF("bin/tool", 1, 0755),
		FILE_OF("docs/SKILL.md", 1, 0644),
		FILE_OF("link", 1, 0777),
		FILE_OF("src/start.txt", 1, 0644),
		FILE_OF("sub/lib.so.1", 1, 0644),
		FILE_OF("z/skillsandbox.yaml", 1, 0644),
		FILE_OF("skillsandbox.yaml", 1, 0644),
	};
	static const char *const EXPECTED[] = {
		"skillsandbox.yaml", "src/start.txt", "bin/tool", "b.PY", "link", "sub/lib.so.1"
	};
	char *argv[] = { (char[]){ "python3" }, (char[]){ "/skill/src/start.txt" }, NULL };
	struct ssb_plan plan = { .argv = items(argv) };
	struct lock lock = { 0 };
	struct skill_files now = { .v = new, .n = ARRAY_LEN(new) };
	AUTO(diff_done) struct diff d = { 0 };
	auto_buf out;

	new[4].link = (char[]){ "sub" };
	assert_int_equal(diff_make(&lock, &now, &plan, &d), 0);
	for (size_t i = 0; i < ARRAY_LEN(EXPECTED); i++) {
		assert_string_equal(d.files[i].now->path, EXPECTED[i]);
	}
	buf_init(&out, 4096);
	diff_files(&out, &d, false, 2);
	assert_non_null(strstr(out.data, "\n  and 7 more: 1 executable, 3 code, 3 other\n"));
}

/* A symlink with another target, and a symlink that a file has replaced, count as changes of the
 * content. */
static void test_links(void **state)
{
	struct skill_file old[] = { FILE_OF("a", 1, 0777) };
	struct skill_file new[] = { FILE_OF("a", 1, 0777) };
	struct lock lock = { .files = { .v = old, .n = 1 } };
	struct skill_files now = { .v = new, .n = 1 };
	static char x[] = "x", y[] = "y";
	static char *const cases[][2] = { { x, y }, { x, NULL }, { NULL, y } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(diff_done) struct diff d = { 0 };
		old[0].link = cases[i][0];
		new[0].link = cases[i][1];
		assert_int_equal(diff_make(&lock, &now, NULL, &d), 0);
		assert_int_equal(d.n_files, 1);
		assert_int_equal(d.files[0].change, CHANGE_CONTENT);
	}
}

static void test_asked(void **state)
{
	char *before[] = { (char[]){ "connect to a" }, (char[]){ "read ~/x" }, NULL };
	char *after[] = { (char[]){ "read ~/x" }, (char[]){ "connect to b" },
		          (char[]){ "connect to b" }, (char[]){ "read /\033[2J\ny" }, NULL };
	struct lock lock = { .asked = items(before) };
	struct skill_files now = { 0 };
	struct ssb_plan plan = { .requested = items(after) };
	AUTO(diff_done) struct diff d = { 0 };

	assert_int_equal(diff_make(&lock, &now, &plan, &d), 0);
	auto_free char *text = text_of(&d);
	assert_string_equal(text, "The skill asks for more than you approved:\n"
	                          "  + connect to b\n"
	                          "  + read /\\x1b[2J\\ny\n"
	                          "The skill does not ask for these any more:\n"
	                          "  - connect to a\n");
	auto_buf out = BUF(4096);
	struct json j = JSON_TO(&out, false);

	diff_json(&j, &d);
	assert_string_equal(out.data, "{\"same\":false,\"more\":[\"connect to b\",\"read "
	                              "/\\u001b[2J\\ny\"],\"less\":[\"connect to a\"],"
	                              "\"files\":[]}");
}

static void test_same(void **state)
{
	struct skill_file v[] = { FILE_OF("a", 1, 0644) };
	char *asked_v[] = { (char[]){ "read ~/x" }, NULL };
	struct string_list asked = items(asked_v);
	struct lock lock = { .files = { .v = v, .n = 1 }, .asked = asked };
	struct ssb_plan plan = { .requested = asked };
	AUTO(diff_done) struct diff d = { 0 };

	assert_int_equal(diff_make(&lock, &lock.files, &plan, &d), 0);
	assert_true(d.same);
	auto_free char *text = text_of(&d);
	assert_string_equal(text, "Nothing has changed since you approved the skill.\n");
}

/* At most MAX_SHOWN_FILES files are shown. All requests are shown. */
static void many(size_t n, bool cut)
{
	static char names[MAX_SHOWN_FILES + 1][16];
	static struct skill_file v[MAX_SHOWN_FILES + 1];
	static char *asked_v[MAX_SHOWN_FILES + 2];
	struct lock lock = { 0 };
	AUTO(diff_done) struct diff d = { 0 };
	size_t lines = 0;

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03zu", i);
		v[i] = (struct skill_file){ .path = names[i], .mode = 0644 };
		asked_v[i] = names[i];
	}
	asked_v[n] = NULL;
	struct skill_files now = { .v = v, .n = n };
	struct ssb_plan plan = { .requested = items(asked_v) };
	assert_int_equal(diff_make(&lock, &now, &plan, &d), 0);
	auto_free char *text = text_of(&d);
	for (const char *s = text; (s = strstr(s, "\n  + ")) != NULL; s++) {
		lines++;
	}
	assert_int_equal(lines, n + (cut ? MAX_SHOWN_FILES : n));
	assert_int_equal(strstr(text, "  and 1 more: 1 other\n") != NULL, cut);
}

static void test_cap(void **state)
{
	many(MAX_SHOWN_FILES, false);
	many(MAX_SHOWN_FILES + 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_links),
		cmocka_unit_test(test_asked), cmocka_unit_test(test_same),
		cmocka_unit_test(test_cap),   cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
