/* test_hints.c - hints: texts in a skill's files which show that it needs a file, a host or a
 * variable. Which hints are recognized, and how much of a skill's directory is read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "cases.h"
#include "learn/needs.h"
#include "os/tree.h"

/* Returns new text: "kind value[:port]" for each hint. A "!" marks a need that is proposed only as
 * a comment, a "?" a variable for which the text has a value of its own. */
static char *list(const struct needs *s)
{
	auto_buf out;

	buf_init(&out, 1 << 20);
	buf_adds(&out, "");
	for (size_t i = 0; i < s->n; i++) {
		const struct need *n = &s->v[i];
		buf_addf(&out, "%s%s%s%s %s", i > 0 ? ", " : "", n->danger != NULL ? "!" : "",
		         n->optional ? "?" : "", need_kind_name(n->kind), n->value);
		if (n->port != 0) {
			buf_addf(&out, ":%u", (unsigned)n->port);
		}
		assert_true(n->hint);
	}
	return out.len > 0 ? buf_steal(&out) : strdup("");
}

static void check_text(const struct test_case *c)
{
	struct needs s = { 0 };
	/* a copy of exactly this size, for the sanitizer */
	auto_free char *exact = malloc(c->len[2] + (c->len[2] == 0));

	assert_non_null(exact);
	memcpy(exact, c->v[2], c->len[2]);
	assert_int_equal(hints_text(c->v[1], exact, c->len[2], &s), 0);
	auto_free char *found = list(&s);
	cases_expect(c, 0, found);
	needs_done(&s);
}

static void texts(void **state)
{
	cases_check("hints.case", 3, check_text);
}

static void place_and_line(void **state)
{
	static const char text[] = "\n\nf('https://x.example.com')\n";
	struct needs s = { 0 };

	assert_int_equal(hints_text("scripts/a.py", text, sizeof(text) - 1, &s), 0);
	assert_string_equal(s.v[0].why, "scripts/a.py:3");
	needs_done(&s);
}

/* ---- directories ----------------------------------------------------------------- */

static char top[64];

static void put(const char *name, const char *text, size_t len)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
}

static void make(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/ssb-hints-XXXXXX");
	return mkdtemp(top) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	return tree_remove(AT_FDCWD, top);
}

static char *scan(bool *ret_cut)
{
	struct needs s = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(hints_scan(top, &s, &err), 0);
	*ret_cut = s.cut;
	char *found = list(&s);
	needs_done(&s);
	return found;
}

#define HOST(name) "f('https://" name ".example.com')\n"

/* Returns `len` bytes of text, new: short lines without a hint. */
static char *nothing(size_t len)
{
	char *text = malloc(len);

	assert_non_null(text);
	for (size_t i = 0; i < len; i++) {
		text[i] = i % 64 == 63 ? '\n' : 'x';
	}
	return text;
}

static void only_its_own_text(void **state)
{
	char path[512];
	bool cut = true;

	make("scripts");
	make("node_modules");
	put("scripts/a.py", HOST("a"), strlen(HOST("a")));
	put("node_modules/b.js", HOST("b"), strlen(HOST("b")));
	/* a symlink to a file outside, a FIFO without a writer, and a file that is not text */
	snprintf(path, sizeof(path), "%s.outside.py", top);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, HOST("c"), strlen(HOST("c"))), (ssize_t)strlen(HOST("c")));
	char link[512];
	snprintf(link, sizeof(link), "%s/c.py", top);
	assert_int_equal(symlink(path, link), 0);
	snprintf(link, sizeof(link), "%s/d.py", top);
	assert_int_equal(mkfifo(link, 0644), 0);
	put("e.py", "\0" HOST("e"), strlen(HOST("e")) + 1);
	auto_free char *found = scan(&cut);
	(void)unlink(path);
	assert_string_equal(found, "network a.example.com:443");
	assert_false(cut);
}

static void as_much_as_is_read(void **state)
{
	static const char line[] = HOST("a");
	auto_free char *text = nothing(MAX_HINT_BYTES + 1);
	bool cut = true;

	memcpy(text + MAX_HINT_BYTES - sizeof(line), line, sizeof(line) - 1);
	put("a.py", text, MAX_HINT_BYTES);
	auto_free char *at = scan(&cut);
	assert_string_equal(at, "network a.example.com:443");
	assert_false(cut);
	put("a.py", text, MAX_HINT_BYTES + 1);
	auto_free char *past = scan(&cut);
	assert_string_equal(past, "");
	assert_true(cut);
}

static void as_much_of_all_as_is_read(void **state)
{
	auto_free char *text = nothing(MAX_HINT_BYTES);
	char name[32];
	bool cut = true;

	for (unsigned i = 0; i < MAX_HINT_TOTAL / MAX_HINT_BYTES; i++) {
		snprintf(name, sizeof(name), "f%u.py", i);
		put(name, text, MAX_HINT_BYTES);
	}
	put("z.py", HOST("a"), strlen(HOST("a")));
	auto_free char *at = scan(&cut);
	assert_string_equal(at, "network a.example.com:443");
	assert_false(cut);
	put("y.py", "\n", 1);
	auto_free char *past = scan(&cut);
	assert_string_equal(past, "");
	assert_true(cut);
}

static void as_many_files_as_are_read(void **state)
{
	char name[32];
	bool cut = true;

	for (unsigned i = 0; i < MAX_HINT_FILES; i++) {
		snprintf(name, sizeof(name), "f%04u.py", i);
		put(name, "\n", 1);
	}
	put("f0511.py", HOST("a"), strlen(HOST("a")));
	auto_free char *at = scan(&cut);
	assert_string_equal(at, "network a.example.com:443");
	assert_false(cut);
	put("f0510x.py", "\n", 1); /* one file more, which is read before f0511.py */
	auto_free char *past = scan(&cut);
	assert_string_equal(past, "");
	assert_true(cut);
}

static void as_deep_as_is_read(void **state)
{
	char path[256] = "";
	bool cut = true;

	for (int i = 1; i < MAX_HINT_DEPTH; i++) {
		strncat(path, "d", 2);
		make(path);
		strncat(path, "/", 2);
	}
	char file[300];
	snprintf(file, sizeof(file), "%sa.py", path);
	put(file, HOST("a"), strlen(HOST("a")));
	auto_free char *at = scan(&cut);
	assert_string_equal(at, "network a.example.com:443");
	assert_false(cut);
	strncat(path, "d", 2);
	make(path);
	auto_free char *past = scan(&cut);
	assert_true(cut);
}

static void a_script_of_dollars(void **state)
{
	struct needs s = { 0 };
	auto_buf text;

	buf_init(&text, MAX_HINT_BYTES);
	for (int i = 0; i <= MAX_HINT_LOOKS; i++) {
		assert_false(s.cut);
		buf_addf(&text, "echo $AA%d\n", i);
	}
	assert_int_equal(hints_text("a.sh", text.data, text.len, &s), 0);
	assert_int_equal(s.n, MAX_HINT_LOOKS);
	assert_true(s.cut);
	needs_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASES_TEST(texts),
		cmocka_unit_test(place_and_line),
		cmocka_unit_test_setup_teardown(only_its_own_text, setup, teardown),
		cmocka_unit_test_setup_teardown(as_much_as_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(as_much_of_all_as_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_files_as_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(as_deep_as_is_read, setup, teardown),
		cmocka_unit_test(a_script_of_dollars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
