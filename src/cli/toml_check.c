#include "cli/toml_check.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"

struct scan {
	const char *s;
	size_t len;
	size_t at;
	unsigned line;
	unsigned deep;
	unsigned bad; /* the line of `why` */
	const char *why;
};

static bool wrong(struct scan *c, unsigned line, const char *why)
{
	c->bad = line;
	c->why = why;
	return false;
}

/* '\0': the end, for the text itself has none. */
static char peek(const struct scan *c, size_t ahead)
{
	return ahead < c->len - c->at ? c->s[c->at + ahead] : '\0';
}

/* ---- bytes ----------------------------------------------------------------------- */

static bool bytes(struct scan *c)
{
	unsigned line = 1;

	for (size_t at = 0, n; at < c->len; at += n) {
		uint32_t cp = 0;
		n = utf8_decode(c->s + at, c->len - at, &cp);
		if (n == 0) {
			return wrong(c, line, "a byte is no UTF-8");
		}
		bool ends = cp == '\n' || (cp == '\r' && c->len - at > 1 && c->s[at + 1] == '\n');
		if ((cp < ' ' && cp != '\t' && !ends) || cp == 127) {
			return wrong(c, line, "a control character");
		}
		line += cp == '\n';
	}
	return true;
}

static void skip_spaces(struct scan *c)
{
	while (peek(c, 0) == ' ' || peek(c, 0) == '\t' || peek(c, 0) == '\r') {
		c->at++;
	}
}

/* To the end of the line, or to what stands there. */
static void skip_comment(struct scan *c)
{
	skip_spaces(c);
	if (peek(c, 0) == '#') {
		const char *end = memchr(c->s + c->at, '\n', c->len - c->at);
		c->at = end != NULL ? (size_t)(end - c->s) : c->len;
	}
}

static void skip_lines(struct scan *c)
{
	for (skip_comment(c); peek(c, 0) == '\n'; skip_comment(c)) {
		c->at++;
		c->line++;
	}
}

/* ---- strings --------------------------------------------------------------------- */

static bool escape(struct scan *c, bool long_one)
{
	static const char WRONG[] = "a backslash in double quotes that begins no escape";
	char sign = peek(c, 1);
	size_t digits = sign == 'u' ? 4 : sign == 'U' ? 8 : sign == 'x' ? 2 : 0;

	if (long_one && isspace((unsigned char)sign) != 0) {
		c->at++;
		skip_spaces(c);
		return peek(c, 0) == '\n' || wrong(c, c->line, WRONG);
	}
	if (sign == '\0' || (digits == 0 && strchr("btnfre\"\\", sign) == NULL)) {
		return wrong(c, c->line, WRONG);
	}
	for (c->at += 2; digits > 0; digits--, c->at++) {
		if (isxdigit((unsigned char)peek(c, 0)) == 0) {
			return wrong(c, c->line, WRONG);
		}
	}
	return true;
}

/* The quote that was just passed closes the string, perhaps with those behind it. */
static bool closes(struct scan *c, char quote, bool long_one)
{
	size_t n = 0;

	if (!long_one) {
		return true;
	}
	while (n < 4 && peek(c, n) == quote) {
		n++; /* up to two belong to the text */
	}
	c->at += n >= 2 ? n : 0;
	return n >= 2;
}

/* One of the four kinds; of several lines only where that may be. */
static bool string(struct scan *c, bool may_be_long)
{
	char quote = peek(c, 0);
	bool long_one = may_be_long && peek(c, 1) == quote && peek(c, 2) == quote;
	unsigned line = c->line;

	c->at += long_one ? 3 : 1;
	for (;;) {
		char b = peek(c, 0);
		if (b == '\0' || (b == '\n' && !long_one)) {
			return wrong(c, line, "a string that is not closed");
		}
		if (b == '\\' && quote == '"') {
			if (!escape(c, long_one)) {
				return false;
			}
			continue;
		}
		c->line += b == '\n';
		c->at++;
		if (b == quote && closes(c, quote, long_one)) {
			return true;
		}
	}
}

/* ---- keys and values ------------------------------------------------------------- */

static bool value(struct scan *c);

static bool key_part(struct scan *c)
{
	size_t n = 0;

	if (peek(c, 0) == '"' || peek(c, 0) == '\'') {
		return string(c, false);
	}
	while (isalnum((unsigned char)peek(c, n)) != 0 || peek(c, n) == '_' || peek(c, n) == '-') {
		n++;
	}
	c->at += n;
	return n > 0 || wrong(c, c->line, "no key where one should be, or one that needs quotes");
}

static bool key(struct scan *c)
{
	for (;; c->at++) {
		skip_spaces(c);
		if (!key_part(c)) {
			return false;
		}
		skip_spaces(c);
		if (peek(c, 0) != '.') {
			return true;
		}
	}
}

static bool entry(struct scan *c)
{
	if (!key(c)) {
		return false;
	}
	if (peek(c, 0) != '=') {
		return wrong(c, c->line, "a key without '=' behind it");
	}
	c->at++;
	skip_spaces(c);
	return value(c);
}

/* An array, or an inline table. */
static bool nested(struct scan *c)
{
	bool table = peek(c, 0) == '{';
	char end = table ? '}' : ']';
	unsigned line = c->line;

	if (c->deep == MAX_CONFIG_DEPTH) {
		return wrong(c, line, "arrays or tables that are nested too deeply");
	}
	c->deep++;
	for (char before = ','; before == ',';) {
		c->at++;
		skip_lines(c);
		if (peek(c, 0) == end) {
			break;
		}
		if (peek(c, 0) != '\0' && !(table ? entry(c) : value(c))) {
			return false;
		}
		skip_lines(c);
		before = peek(c, 0);
		if (before != ',' && before != end) {
			return wrong(c, line,
			             table ? "a '{' that is not closed, or lacks a comma"
			                   : "a '[' that is not closed, or lacks a comma");
		}
	}
	c->at++;
	c->deep--;
	return true;
}

static size_t plain_length(const struct scan *c, size_t from)
{
	size_t n = 0;

	while (isalnum((unsigned char)peek(c, from + n)) != 0 ||
	       (peek(c, from + n) != '\0' && strchr("+-_.:", peek(c, from + n)) != NULL)) {
		n++;
	}
	return n;
}

/* A number, a date, true, false, inf or nan. */
static bool plain(struct scan *c)
{
	static const char *const WORDS[] = { "true", "false", "inf", "nan" };
	size_t n = plain_length(c, 0);
	size_t sign = peek(c, 0) == '+' || peek(c, 0) == '-';
	const char *word = c->s + c->at + sign;
	bool known = n > sign && isdigit((unsigned char)word[0]) != 0;

	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		known = known || (n - sign == strlen(WORDS[i]) && (sign == 0 || i >= 2) &&
		                  memcmp(word, WORDS[i], n - sign) == 0);
	}
	if (!known) {
		return wrong(c, c->line, "no value where one should be, or a text without quotes");
	}
	/* "1979-05-27 07:32:00" */
	if (n == strlen("1979-05-27") && peek(c, 4) == '-' && peek(c, n) == ' ' &&
	    isdigit((unsigned char)peek(c, n + 1)) != 0) {
		n += 1 + plain_length(c, n + 1);
	}
	c->at += n;
	return true;
}

static bool value(struct scan *c)
{
	switch (peek(c, 0)) {
	case '"':
	case '\'':
		return string(c, true);
	case '[':
	case '{':
		return nested(c); /* as deep as MAX_CONFIG_DEPTH */
	default:
		return plain(c);
	}
}

/* ---- the whole ------------------------------------------------------------------- */

static bool header(struct scan *c)
{
	size_t n = peek(c, 1) == '[' ? 2 : 1;

	c->at += n;
	if (!key(c)) {
		return false;
	}
	for (; n > 0; n--, c->at++) {
		if (peek(c, 0) != ']') {
			return wrong(c, c->line, "the header of a table that is not closed");
		}
	}
	return true;
}

static bool document(struct scan *c)
{
	if (c->len >= 3 && memcmp(c->s, "\xef\xbb\xbf", 3) == 0) {
		c->at = 3;
	}
	for (skip_lines(c); c->at < c->len; skip_lines(c)) {
		if (!(peek(c, 0) == '[' ? header(c) : entry(c))) {
			return false;
		}
		skip_comment(c);
		if (c->at < c->len && peek(c, 0) != '\n') {
			return wrong(c, c->line, "something behind the end of a value or header");
		}
	}
	return true;
}

const char *toml_check(const char *text, size_t len, unsigned *ret_line)
{
	struct scan c = { .s = text, .len = len, .line = 1 };

	if (bytes(&c) && document(&c)) {
		return NULL;
	}
	*ret_line = c.bad;
	return c.why;
}
