/* toml_check.c - see toml_check.h. */
#include "cli/toml_check.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"

struct toml_scan {
	const char *s;
	size_t len;
	size_t at;
	unsigned line;
	unsigned deep;
	unsigned bad; /* line of the error in `why` */
	const char *why;
};

static bool fail_check(struct toml_scan *c, unsigned line, const char *why)
{
	c->bad = line;
	c->why = why;
	return false;
}

/* Returns the character `ahead` of the position; '\0' at the end, because the text contains no NUL.
 */
static char peek_char(const struct toml_scan *c, size_t ahead)
{
	return ahead < c->len - c->at ? c->s[c->at + ahead] : '\0';
}

/* ---- bytes ----------------------------------------------------------------------- */

static bool check_bytes(struct toml_scan *c)
{
	unsigned line = 1;

	for (size_t at = 0, n; at < c->len; at += n) {
		uint32_t cp = 0;
		n = utf8_decode(c->s + at, c->len - at, &cp);
		if (n == 0) {
			return fail_check(c, line, "a byte that is not UTF-8");
		}
		bool ends = cp == '\n' || (cp == '\r' && c->len - at > 1 && c->s[at + 1] == '\n');
		if ((cp < ' ' && cp != '\t' && !ends) || cp == 127) {
			return fail_check(c, line, "a control character");
		}
		line += cp == '\n';
	}
	return true;
}

static void skip_spaces(struct toml_scan *c)
{
	while (peek_char(c, 0) == ' ' || peek_char(c, 0) == '\t' || peek_char(c, 0) == '\r') {
		c->at++;
	}
}

/* Skips spaces, and a comment up to the end of its line. */
static void skip_comment(struct toml_scan *c)
{
	skip_spaces(c);
	if (peek_char(c, 0) == '#') {
		const char *end = memchr(c->s + c->at, '\n', c->len - c->at);
		c->at = end != NULL ? (size_t)(end - c->s) : c->len;
	}
}

static void skip_lines(struct toml_scan *c)
{
	for (skip_comment(c); peek_char(c, 0) == '\n'; skip_comment(c)) {
		c->at++;
		c->line++;
	}
}

/* ---- strings --------------------------------------------------------------------- */

static bool read_escape(struct toml_scan *c, bool long_one)
{
	static const char WRONG[] = "a backslash in double quotes that does not begin an escape";
	char sign = peek_char(c, 1);
	size_t digits = sign == 'u' ? 4 : sign == 'U' ? 8 : sign == 'x' ? 2 : 0;

	if (long_one && isspace((unsigned char)sign) != 0) {
		c->at++;
		skip_spaces(c);
		return peek_char(c, 0) == '\n' || fail_check(c, c->line, WRONG);
	}
	if (sign == '\0' || (digits == 0 && strchr("btnfre\"\\", sign) == NULL)) {
		return fail_check(c, c->line, WRONG);
	}
	for (c->at += 2; digits > 0; digits--, c->at++) {
		if (isxdigit((unsigned char)peek_char(c, 0)) == 0) {
			return fail_check(c, c->line, WRONG);
		}
	}
	return true;
}

/* A quote was just passed: does it close the string? A multi-line string is closed by three quotes.
 */
static bool closes_string(struct toml_scan *c, char quote, bool long_one)
{
	size_t n = 0;

	if (!long_one) {
		return true;
	}
	while (n < 4 && peek_char(c, n) == quote) {
		n++; /* up to two quotes before the closing three belong to the text */
	}
	c->at += n >= 2 ? n : 0;
	return n >= 2;
}

/* Reads a string of any of the four kinds. `may_be_long`: multi-line strings are allowed. */
static bool read_string(struct toml_scan *c, bool may_be_long)
{
	char quote = peek_char(c, 0);
	bool long_one = may_be_long && peek_char(c, 1) == quote && peek_char(c, 2) == quote;
	unsigned line = c->line;

	c->at += long_one ? 3 : 1;
	for (;;) {
		char b = peek_char(c, 0);
		if (b == '\0' || (b == '\n' && !long_one)) {
			return fail_check(c, line, "a string that is not closed");
		}
		if (b == '\\' && quote == '"') {
			if (!read_escape(c, long_one)) {
				return false;
			}
			continue;
		}
		c->line += b == '\n';
		c->at++;
		if (b == quote && closes_string(c, quote, long_one)) {
			return true;
		}
	}
}

/* ---- keys and values ------------------------------------------------------------- */

static bool read_value(struct toml_scan *c);

static bool read_key_part(struct toml_scan *c)
{
	size_t n = 0;

	if (peek_char(c, 0) == '"' || peek_char(c, 0) == '\'') {
		return read_string(c, false);
	}
	while (isalnum((unsigned char)peek_char(c, n)) != 0 || peek_char(c, n) == '_' ||
	       peek_char(c, n) == '-') {
		n++;
	}
	c->at += n;
	return n > 0 || fail_check(c, c->line, "a key is missing, or needs quotes");
}

static bool read_key(struct toml_scan *c)
{
	for (;; c->at++) {
		skip_spaces(c);
		if (!read_key_part(c)) {
			return false;
		}
		skip_spaces(c);
		if (peek_char(c, 0) != '.') {
			return true;
		}
	}
}

static bool read_entry(struct toml_scan *c)
{
	if (!read_key(c)) {
		return false;
	}
	if (peek_char(c, 0) != '=') {
		return fail_check(c, c->line, "a key without '=' after it");
	}
	c->at++;
	skip_spaces(c);
	return read_value(c);
}

/* Reads an array or an inline table. */
static bool read_nested(struct toml_scan *c)
{
	bool table = peek_char(c, 0) == '{';
	char end = table ? '}' : ']';
	unsigned line = c->line;

	if (c->deep == MAX_CONFIG_DEPTH) {
		return fail_check(c, line, "arrays or tables that are nested too deeply");
	}
	c->deep++;
	for (char before = ','; before == ',';) {
		c->at++;
		skip_lines(c);
		if (peek_char(c, 0) == end) {
			break;
		}
		if (peek_char(c, 0) != '\0' && !(table ? read_entry(c) : read_value(c))) {
			return false;
		}
		skip_lines(c);
		before = peek_char(c, 0);
		if (before != ',' && before != end) {
			return fail_check(c, line,
			                  table ? "a '{' that is not closed, or lacks a comma"
			                        : "a '[' that is not closed, or lacks a comma");
		}
	}
	c->at++;
	c->deep--;
	return true;
}

static size_t find_plain_length(const struct toml_scan *c, size_t from)
{
	size_t n = 0;

	while (isalnum((unsigned char)peek_char(c, from + n)) != 0 ||
	       (peek_char(c, from + n) != '\0' &&
	        strchr("+-_.:", peek_char(c, from + n)) != NULL)) {
		n++;
	}
	return n;
}

/* Reads a number, a date, true, false, inf or nan. */
static bool read_plain(struct toml_scan *c)
{
	static const char *const WORDS[] = { "true", "false", "inf", "nan" };
	size_t n = find_plain_length(c, 0);
	size_t sign = peek_char(c, 0) == '+' || peek_char(c, 0) == '-';
	const char *word = c->s + c->at + sign;
	bool known = n > sign && isdigit((unsigned char)word[0]) != 0;

	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		known = known || (n - sign == strlen(WORDS[i]) && (sign == 0 || i >= 2) &&
		                  memcmp(word, WORDS[i], n - sign) == 0);
	}
	if (!known) {
		return fail_check(c, c->line, "a value is missing, or needs quotes");
	}
	/* A date and a time may be separated by a space: "1979-05-27 07:32:00". */
	if (n == strlen("1979-05-27") && peek_char(c, 4) == '-' && peek_char(c, n) == ' ' &&
	    isdigit((unsigned char)peek_char(c, n + 1)) != 0) {
		n += 1 + find_plain_length(c, n + 1);
	}
	c->at += n;
	return true;
}

static bool read_value(struct toml_scan *c)
{
	switch (peek_char(c, 0)) {
	case '"':
	case '\'':
		return read_string(c, true);
	case '[':
	case '{':
		return read_nested(c); /* recursion, at most MAX_CONFIG_DEPTH deep */
	default:
		return read_plain(c);
	}
}

/* ---- the whole text ------------------------------------------------------------- */

static bool read_header(struct toml_scan *c)
{
	size_t n = peek_char(c, 1) == '[' ? 2 : 1;

	c->at += n;
	if (!read_key(c)) {
		return false;
	}
	for (; n > 0; n--, c->at++) {
		if (peek_char(c, 0) != ']') {
			return fail_check(c, c->line, "the header of a table that is not closed");
		}
	}
	return true;
}

static bool read_document(struct toml_scan *c)
{
	if (c->len >= 3 && memcmp(c->s, "\xef\xbb\xbf", 3) == 0) {
		c->at = 3;
	}
	for (skip_lines(c); c->at < c->len; skip_lines(c)) {
		if (!(peek_char(c, 0) == '[' ? read_header(c) : read_entry(c))) {
			return false;
		}
		skip_comment(c);
		if (c->at < c->len && peek_char(c, 0) != '\n') {
			return fail_check(c, c->line,
			                  "something after the end of a value or header");
		}
	}
	return true;
}

const char *toml_check(const char *text, size_t len, unsigned *ret_line)
{
	struct toml_scan c = { .s = text, .len = len, .line = 1 };

	if (check_bytes(&c) && read_document(&c)) {
		return NULL;
	}
	*ret_line = c.bad;
	return c.why;
}
