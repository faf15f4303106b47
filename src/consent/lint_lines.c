/* lint_lines.c - a text as lines to be searched.
 *
 * Lines that a shell takes for one are one here. What is a comment in code does nothing,
 * and is passed over. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"

#define SHORTEST 4 /* line that says anything */

struct reader {
	enum lint_kind kind;
	lint_line_fn *fn;
	void *arg;
	char *low; /* MAX_LINT_LINE */
	char *tight;
};

char lint_next(const char *line, size_t len, size_t at)
{
	while (at < len && (line[at] == ' ' || line[at] == '\t')) {
		at++;
	}
	return at < len ? line[at] : '\0';
}

bool lint_is_row(const char *line, size_t len)
{
	return lint_next(line, len, 0) == '|';
}

static bool is_comment(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && (line[at] == ' ' || line[at] == '\t')) {
		at++;
	}
	return at < len &&
	       (line[at] == '#' || (at + 1 < len && line[at] == '/' && line[at + 1] == '/'));
}

/* Does the command go on in the next line? *inout_len becomes what counts of this. */
static bool goes_on(const char *line, size_t *inout_len)
{
	size_t n = *inout_len;

	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t' || line[n - 1] == '\r')) {
		n--;
	}
	if (n > 0 && line[n - 1] == '\\') {
		*inout_len = n - 1;
		return true;
	}
	return n > 0 && line[n - 1] == '|';
}

/* Appends, as far as there is room. */
static void append(struct reader *r, struct lint_line *l, const char *line, size_t len)
{
	for (size_t i = 0; i < len && l->len < MAX_LINT_LINE; i++) {
		char c = (char)tolower((unsigned char)line[i]);
		r->low[l->len++] = c;
		l->has[(unsigned char)c >> 6] |= UINT64_C(1) << ((unsigned char)c & 63);
		if (c != ' ' && c != '\t' && c != '\r') {
			r->tight[l->tight_len++] = c;
		}
	}
}

/* What is too long for one piece is looked at in pieces that overlap. */
static void look_at_long(struct reader *r, const char *line, size_t len, unsigned no)
{
	for (size_t at = 0; at < len; at += MAX_LINT_LINE - LINT_OVERLAP) {
		struct lint_line l = { .low = r->low, .tight = r->tight, .no = no };
		append(r, &l, line + at, len - at);
		r->fn(r->arg, &l);
	}
}

static void flush(struct reader *r, struct lint_line *l)
{
	if (l->tight_len >= SHORTEST) {
		r->fn(r->arg, l);
	}
	*l = (struct lint_line){ .low = r->low, .tight = r->tight };
}

static void read_lines(struct reader *r, const char *bytes, size_t len)
{
	struct lint_line l = { .low = r->low, .tight = r->tight };
	unsigned no = 1;

	for (size_t at = 0; at < len; no++) {
		const char *line = bytes + at;
		const char *newline = memchr(line, '\n', len - at);
		size_t n = newline != NULL ? (size_t)(newline - line) : len - at;
		at += n + 1;
		if (l.len > 0 && l.len + n > MAX_LINT_LINE) {
			flush(r, &l);
		}
		l.no = l.len == 0 ? no : l.no;
		if (r->kind == LINT_CODE && is_comment(line, n)) {
			continue;
		}
		if (n > MAX_LINT_LINE) {
			look_at_long(r, line, n, no);
			continue;
		}
		bool row = r->kind == LINT_PROSE && lint_is_row(line, n);
		bool more = !row && goes_on(line, &n);
		append(r, &l, line, n);
		if (more && at < len && l.len < MAX_LINT_LINE) {
			append(r, &l, " ", 1);
			continue;
		}
		flush(r, &l);
	}
	if (l.len > 0) {
		flush(r, &l);
	}
}

bool lint_lines(const char *bytes, size_t len, enum lint_kind kind, lint_line_fn *fn, void *arg)
{
	auto_free char *low = malloc(MAX_LINT_LINE);
	auto_free char *tight = malloc(MAX_LINT_LINE);
	struct reader r = { .kind = kind, .fn = fn, .arg = arg, .low = low, .tight = tight };

	if (low == NULL || tight == NULL) {
		return false;
	}
	read_lines(&r, bytes, len);
	return true;
}
