/* test_line_diff.c - the lines in which two texts differ. The results are compared with a table,
 * and with those of a slow, simple algorithm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/line_diff.h"
#include "base/own.h"

static const struct {
	const char *before, *now, *edits; /* edits: an operator, the line and "|" for each */
} ROWS[] = {
	{ "", "", "" },
	{ "a\n", "a\n", "" },
	{ "", "a\n", "@|+a|" },
	{ "a\n", "", "@|-a|" },
	{ "a\nb\nc\n", "a\nx\nc\n", "@| a|-b|+x| c|" },
	{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\nx\n", "@| 8|-9|+x|" },
	{ "1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", "@|-1|+x| 2|@| 4|-5|+y|" },
	{ "a", "a\n", "" }, /* the last newline does not begin another line */
	{ "\n\n", "\n", "@| |-|" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		AUTO(line_edits_done) struct line_edits e = { 0 };
		auto_buf out = BUF(4096);

		buf_adds(&out, "");
		assert_int_equal(line_diff(ROWS[i].before, strlen(ROWS[i].before), ROWS[i].now,
		                           strlen(ROWS[i].now), 1, &e),
		                 0);
		for (size_t k = 0; k < e.n; k++) {
			buf_addc(&out, e.v[k].op);
			buf_add(&out, e.v[k].text, e.v[k].len);
			buf_addc(&out, '|');
		}
		assert_string_equal(out.data != NULL ? out.data : "", ROWS[i].edits);
	}
}

static size_t common(const char *a, size_t n, const char *b, size_t m)
{
	size_t t[20][20] = { 0 };

	for (size_t i = 1; i <= n; i++) {
		for (size_t k = 1; k <= m; k++) {
			size_t max = t[i - 1][k] > t[i][k - 1] ? t[i - 1][k] : t[i][k - 1];
			t[i][k] = a[2 * (i - 1)] == b[2 * (k - 1)] ? t[i - 1][k - 1] + 1 : max;
		}
	}
	return t[n][m];
}

#ifdef __SANITIZE_ADDRESS__
#define TURNS 4000 /* fewer, because ASan writes to all of the memory twice */
#else
#define TURNS 20000
#endif

/* For thousands of small texts, the edits turn the first text into the second, with the smallest
 * number of edits. */
static void test_definition(void **state)
{
	unsigned seed = 7;

	for (int turn = 0; turn < TURNS; turn++) {
		char a[40], b[40], back[40];
		size_t n = 0, m = 0, edits = 0, at = 0;
		for (n = 0; n < (size_t)rand_r(&seed) % 16; n++) {
			a[2 * n] = (char)('a' + rand_r(&seed) % 4);
			a[2 * n + 1] = '\n';
		}
		for (m = 0; m < (size_t)rand_r(&seed) % 16; m++) {
			b[2 * m] = (char)('a' + rand_r(&seed) % 4);
			b[2 * m + 1] = '\n';
		}
		AUTO(line_edits_done) struct line_edits e = { 0 };
		assert_int_equal(line_diff(a, 2 * n, b, 2 * m, 100, &e), 0);
		for (size_t k = 0; k < e.n; k++) {
			edits += e.v[k].op == '+' || e.v[k].op == '-';
			if (e.v[k].op == '+' || e.v[k].op == ' ') {
				assert_int_equal(e.v[k].now, at / 2 + 1);
				back[at++] = e.v[k].text[0];
				back[at++] = '\n';
			}
		}
		assert_int_equal(edits, n + m - 2 * common(a, n, b, m));
		if (edits > 0) {
			assert_int_equal(at, 2 * m);
			assert_memory_equal(back, b, at);
		}
	}
}

static void lines(struct buf *out, size_t n, char c)
{
	buf_init(out, 1UL << 20);
	for (size_t i = 0; i < n; i++) {
		buf_addf(out, "%c%zu\n", c, i);
	}
}

static void try(size_t n, char a, size_t m, char b, int wanted)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };
	auto_buf x, y;

	lines(&x, n, a);
	lines(&y, m, b);
	errno = 0;
	assert_int_equal(line_diff(x.data, x.len, y.data, y.len, 3, &e), wanted);
	assert_int_equal(errno, wanted == 0 ? 0 : E2BIG);
}

static void test_caps(void **state)
{
	try(MAX_DIFF_LINES, 'x', MAX_DIFF_LINES, 'x', 0);
	try(MAX_DIFF_LINES + 1, 'x', 1, 'x', -1);
	try(1, 'x', MAX_DIFF_LINES + 1, 'x', -1);
	try(MAX_DIFF_EDITS / 2, 'x', MAX_DIFF_EDITS / 2, 'y', 0);
	try(MAX_DIFF_EDITS / 2, 'x', MAX_DIFF_EDITS / 2 + 1, 'y', -1);
}

/* Lines that are equal at the start or the end of both texts do not count for the cap. They count
 * for the line numbers. */
static void test_ends(void **state)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };
	auto_buf x, y;

	lines(&x, 4UL * MAX_DIFF_LINES, 'x');
	lines(&y, 4UL * MAX_DIFF_LINES, 'x');
	char *at = strstr(y.data, "\nx9000\n");
	assert_non_null(at);
	at[1] = 'y';
	assert_int_equal(line_diff(x.data, x.len, y.data, y.len, 1, &e), 0);
	assert_int_equal(e.n, 5);
	static const char OPS[] = "@ -+ ";
	for (size_t i = 0; i < e.n; i++) {
		assert_int_equal(e.v[i].op, OPS[i]);
	}
	assert_int_equal(e.v[0].before, 9000);
	assert_int_equal(e.v[3].now, 9001);
	assert_memory_equal(e.v[4].text, "x9001", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_definition),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
