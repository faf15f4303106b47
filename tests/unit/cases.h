/* cases.h - cases from a file of tests/unit/data: one line each, with tabs between the columns.
 *
 *   EXPECTED  [COLUMN]  TEXT
 *
 * "-" alone is an empty column. Missing columns at the end are empty, too. TEXT may also be written
 * below its line, with one tab before each of its lines: then it ends with a line break. Escapes
 * are \n \t \r \\ and \xHH; a backslash before any other character means itself. Empty lines, and
 * lines that begin with #, are comments.
 *
 * A failed case is reported as FILE:LINE. The cases after it are still run. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <stddef.h>

#define CASE_COLUMNS 3

struct test_case {
	const char *file;
	size_t line;           /* from 1 */
	char *v[CASE_COLUMNS]; /* NUL-terminated */
	size_t len[CASE_COLUMNS];
};

/* Calls `check` for each case of tests/unit/data/NAME, which has `columns` columns. Fails the test
 * if a case failed, if the file cannot be parsed, or if it has no case. */
void cases_check(const char *name, size_t columns, void (*check)(const struct test_case *c));

/* For use in `check`. cases_expect() fails the case unless `got` equals column `i`.
 * cases_expect_part() fails it unless `got` contains the column. cases_fail() always fails it. */
void cases_expect(const struct test_case *c, size_t i, const char *got);
void cases_expect_part(const struct test_case *c, size_t i, const char *got);
void cases_fail(const struct test_case *c, const char *why);

/* Declares a test that calls cases_check(). If an assertion ends a check, the teardown prints the
 * case. */
#define CASES_TEST(f) cmocka_unit_test_teardown(f, cases_name_unfinished)
int cases_name_unfinished(void **state);

#endif
