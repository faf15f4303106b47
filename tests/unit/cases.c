/* cases.c - reads the cases of a file, and reports the cases that fail. */
#include "cases.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/own.h"
#include "os/file.h"

#define MAX_CASES_BYTES (1UL << 20)

static struct test_case current; /* `line` is 0 if no check is running */
static size_t n_cases, failed;

void cases_expect(const struct test_case *c, size_t i, const char *got)
{
	if (strcmp(got, c->v[i]) != 0) {
		print_error("%s:%zu: expected '%s'\n  got '%s'\n", c->file, c->line, c->v[i], got);
		failed++;
	}
}

void cases_expect_part(const struct test_case *c, size_t i, const char *got)
{
	if (strstr(got, c->v[i]) == NULL) {
		print_error("%s:%zu: '%s' is not in '%s'\n", c->file, c->line, c->v[i], got);
		failed++;
	}
}

void cases_fail(const struct test_case *c, const char *why)
{
	print_error("%s:%zu: %s\n", c->file, c->line, why);
	failed++;
}

int cases_name_unfinished(void **state)
{
	if (current.line != 0) {
		print_error("%s:%zu: its check did not end\n", current.file, current.line);
		current.line = 0;
	}
	return 0;
}

/* Appends the character for which the escape at `p` stands. Returns the length of the escape, or 0
 * if there is no escape at `p`. */
static size_t add_escape(struct buf *out, const char *p, size_t len)
{
	static const char NAMES[] = "ntr\\";
	static const char BYTES[] = "\n\t\r\\";
	const char *name = len >= 2 ? memchr(NAMES, p[1], sizeof(NAMES) - 1) : NULL;

	if (name != NULL) {
		buf_addc(out, BYTES[name - NAMES]);
		return 2;
	}
	if (len < 4 || p[1] != 'x' || hex_digit(p[2]) < 0 || hex_digit(p[3]) < 0) {
		return 0;
	}
	buf_addc(out, (char)(hex_digit(p[2]) << 4 | hex_digit(p[3])));
	return 4;
}

static void add_unescaped(struct buf *out, const char *p, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = p[i] == '\\' ? add_escape(out, p + i, len - i) : 0;
		if (n == 0) {
			buf_addc(out, p[i]);
			n = 1;
		}
		i += n;
	}
}

/* Splits a line into columns, each into a buffer of its own. Returns the number of columns. */
static size_t split_columns(const char *line, struct buf columns[], size_t most)
{
	size_t n = 0;

	while (*line != '\0') {
		size_t len = strcspn(line, "\t");
		if (n < most && (len != 1 || line[0] != '-')) {
			add_unescaped(&columns[n], line, len);
		}
		n++;
		line += len;
		line += strspn(line, "\t");
	}
	return n;
}

/* Reads the indented lines at *at: they belong to the last column. Returns the number of lines. */
static size_t read_indented(char **at, struct buf *text)
{
	size_t n = 0;

	for (; (*at)[0] == '\t'; n++) {
		size_t len = strcspn(*at, "\n");
		add_unescaped(text, *at + 1, len - 1);
		buf_addc(text, '\n');
		*at += len + ((*at)[len] == '\n');
	}
	return n;
}

static void check_text(char *at, size_t columns, void (*check)(const struct test_case *c))
{
	struct buf v[CASE_COLUMNS];

	for (size_t i = 0; i < columns; i++) {
		buf_init(&v[i], MAX_CASES_BYTES);
	}
	for (size_t next = 1; *at != '\0';) {
		size_t len = strcspn(at, "\n");
		char *line = at;
		at += len + (at[len] == '\n');
		line[len] = '\0';
		current.line = next++;
		if (len == 0 || line[0] == '#') {
			continue;
		}
		for (size_t i = 0; i < columns; i++) {
			buf_reset(&v[i]);
			buf_adds(&v[i], "");
		}
		if (split_columns(line, v, columns) > columns) {
			cases_fail(&current, "has more columns than the file");
		}
		next += read_indented(&at, &v[columns - 1]);
		for (size_t i = 0; i < columns; i++) {
			assert_false(v[i].failed);
			current.v[i] = v[i].data;
			current.len[i] = v[i].len;
		}
		check(&current);
		n_cases++;
	}
	for (size_t i = 0; i < columns; i++) {
		buf_done(&v[i]);
	}
}

void cases_check(const char *name, size_t columns, void (*check)(const struct test_case *c))
{
	const char *source = getenv("SSB_SOURCE");
	static char path[4096]; /* static: `current` needs it after a failed assertion */
	auto_buf text;

	assert_true(columns <= CASE_COLUMNS);
	snprintf(path, sizeof(path), "%s/tests/unit/data/%s", source != NULL ? source : ".", name);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(&text, MAX_CASES_BYTES);
	if (fd < 0 || file_read_all(fd, &text) < 0 || text.len == 0) {
		fail_msg("cannot read %s", path);
	}
	n_cases = failed = 0;
	current = (struct test_case){ .file = path };
	check_text(text.data, columns, check);
	current.line = 0;
	if (n_cases == 0) {
		fail_msg("no case in %s", path);
	}
	if (failed > 0) {
		fail_msg("%zu of %zu cases of %s failed", failed, n_cases, path);
	}
}
