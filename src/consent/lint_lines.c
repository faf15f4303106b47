/* lint_lines.c - a text as lines, the words in a line, and where a pipe leads. */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"

#define SHORTEST 4 /* a shorter line cannot contain a finding */

/* ---- lines ------------------------------------------------------------------------ */

struct lint_reader {
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

/* Returns true if the command continues on the next line. If the line ends with a backslash,
 * *inout_len becomes the length before it. */
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

/* Appends `line` to `l` in lower case, as far as there is room. */
static void append_bytes(struct lint_reader *r, struct lint_line *l, const char *line, size_t len)
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

/* Passes a long line to r->fn in pieces. They overlap, so that no words are divided. */
static void look_at_long(struct lint_reader *r, const char *line, size_t len, unsigned no)
{
	for (size_t at = 0; at < len; at += MAX_LINT_LINE - LINT_OVERLAP) {
		struct lint_line l = { .low = r->low, .tight = r->tight, .no = no };
		append_bytes(r, &l, line + at, len - at);
		r->fn(r->arg, &l);
	}
}

static void flush_line(struct lint_reader *r, struct lint_line *l)
{
	if (l->tight_len >= SHORTEST) {
		r->fn(r->arg, l);
	}
	*l = (struct lint_line){ .low = r->low, .tight = r->tight };
}

static void read_lines(struct lint_reader *r, const char *bytes, size_t len)
{
	struct lint_line l = { .low = r->low, .tight = r->tight };
	unsigned no = 1;

	for (size_t at = 0; at < len; no++) {
		const char *line = bytes + at;
		const char *newline = memchr(line, '\n', len - at);
		size_t n = newline != NULL ? (size_t)(newline - line) : len - at;
		at += n + 1;
		if (l.len > 0 && l.len + n > MAX_LINT_LINE) {
			flush_line(r, &l);
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
		append_bytes(r, &l, line, n);
		if (more && at < len && l.len < MAX_LINT_LINE) {
			append_bytes(r, &l, " ", 1);
			continue;
		}
		flush_line(r, &l);
	}
	if (l.len > 0) {
		flush_line(r, &l);
	}
}

bool lint_lines(const char *bytes, size_t len, enum lint_kind kind, lint_line_fn *fn, void *arg)
{
	assert(fn != NULL);

	auto_free char *low = malloc(MAX_LINT_LINE);
	auto_free char *tight = malloc(MAX_LINT_LINE);
	struct lint_reader r = { .kind = kind, .fn = fn, .arg = arg, .low = low, .tight = tight };

	if (low == NULL || tight == NULL) {
		return false;
	}
	read_lines(&r, bytes, len);
	return true;
}

/* ---- words ------------------------------------------------------------------------ */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static size_t find_one(const char *text, size_t len, size_t from, const char *what, size_t n)
{
	bool alone = n > 0 && what[0] == '^';

	what += alone;
	n -= alone;
	while (n > 0 && from + n <= len) {
		const char *hit = memmem(text + from, len - from, what, n);
		if (hit == NULL) {
			break;
		}
		size_t at = (size_t)(hit - text), end = at + n;
		char before = at > 0 ? text[at - 1] : ' ';
		bool left = !is_word(what[0]) || !is_word(before);
		bool right = !is_word(what[n - 1]) || end == len || !is_word(text[end]);
		if (left && right && !(alone && strchr("./-$", before) != NULL && before != '\0')) {
			return end;
		}
		from = at + 1;
	}
	return SIZE_MAX;
}

/* A fast check before the search: most lines lack at least one letter of the word. */
static bool may_have(const struct lint_line *l, const char *what, size_t n)
{
	for (size_t i = what[0] == '^'; i < n; i++) {
		unsigned char c = (unsigned char)what[i];
		if ((l->has[c >> 6] >> (c & 63) & 1) == 0) {
			return false;
		}
	}
	return true;
}

size_t lint_find(const struct lint_line *l, bool tight, size_t from, const char *alternatives)
{
	const char *text = tight ? l->tight : l->low;
	size_t len = tight ? l->tight_len : l->len;
	size_t best = SIZE_MAX;

	assert(from <= len && alternatives[0] != '\0');
	for (const char *s = alternatives;;) {
		size_t n = strcspn(s, "\n");
		size_t end = may_have(l, s, n) ? find_one(text, len, from, s, n) : SIZE_MAX;
		best = end < best ? end : best;
		if (s[n] == '\0') {
			return best;
		}
		s += n + 1;
	}
}

/* ---- pipes ------------------------------------------------------------------------ */

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
	while (at < len && (text[at] == ' ' || text[at] == '\t')) {
		at++;
	}
	return at;
}

/* Returns the end of the word at `at`. A quote or the end of a command also ends a word. */
static size_t word_end(const char *text, size_t len, size_t at)
{
	while (at < len && strchr(" \t\n|&;()<>\"'`", text[at]) == NULL) {
		at++;
	}
	return at;
}

static bool word_is(const char *text, size_t from, size_t to, const char *const words[], size_t n)
{
	return ARRAY_HAS(word, words, n,
	                 strlen(*word) == to - from && memcmp(text + from, *word, to - from) == 0);
}

/* Returns true if an interpreter reads a program from the pipe. If its arguments name or
 * contain a program, it reads only data from the pipe. A shell reads a program even with
 * options and, after -s, with arguments. */
static bool reads_program(const char *text, size_t len, size_t at, bool shell)
{
	at = skip_blanks(text, len, at);
	size_t end = word_end(text, len, at);

	if (end == at || (end - at == 1 && text[at] == '-')) {
		return true;
	}
	if (!shell || text[at] != '-') {
		return false;
	}
	return memchr(text + at, 'c', text[at + 1] == '-' ? 0 : end - at) == NULL;
}

/* Returns true if the command at `at` executes its input. sudo and paths in front of it are
 * ignored. */
static bool runs_input(const char *text, size_t len, size_t at)
{
	static const char *const before[] = { "sudo",  "env",  "exec",   "command",
		                              "nohup", "doas", "busybox" };
	static const char *const shells[] = { "sh", "bash", "zsh", "dash", "ksh", "ash", "fish" };
	static const char *const others[] = { "python", "python2", "python3", "perl", "ruby",
		                              "node",   "php",     "lua",     "bun",  "deno" };

	for (;;) {
		at = skip_blanks(text, len, at);
		size_t end = word_end(text, len, at);
		if (end == at) {
			return false;
		}
		size_t base = at;
		for (size_t i = at; i < end; i++) {
			base = text[i] == '/' ? i + 1 : base;
		}
		if (word_is(text, base, end, shells, ARRAY_LEN(shells))) {
			return reads_program(text, len, end, true);
		}
		if (word_is(text, base, end, others, ARRAY_LEN(others))) {
			return reads_program(text, len, end, false);
		}
		if (!word_is(text, base, end, before, ARRAY_LEN(before)) && text[at] != '-' &&
		    memchr(text + at, '=', end - at) == NULL) {
			return false;
		}
		at = end;
	}
}

bool lint_piped(const char *text, size_t len, size_t from)
{
	for (size_t i = from; i < len; i++) {
		if (text[i] == ';' || (text[i] == '&' && i + 1 < len && text[i + 1] == '&')) {
			return false;
		}
		if (text[i] != '|') {
			continue;
		}
		if (i + 1 < len && text[i + 1] == '|') {
			return false;
		}
		size_t at = i + 1 + (i + 1 < len && text[i + 1] == '&');
		if (runs_input(text, len, at)) {
			return true;
		}
	}
	return false;
}
