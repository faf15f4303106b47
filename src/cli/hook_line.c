/* hook_line.c - reads a line of shell. */
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/hook.h"

struct line_reader {
	const char *s;
	size_t len, at;
	const struct hook_name *names;
	enum hook_reading how;
	int quote; /* in which the reader is; 0: none */
	struct buf out;
};

void *hook_must(void *memory)
{
	if (memory == NULL) {
		_exit(EXIT_USAGE);
	}
	return memory;
}

bool hook_line_find(const char *text, const char *ere, size_t n, regmatch_t groups[])
{
	regex_t re;

	hook_must(regcomp(&re, ere, REG_EXTENDED) == 0 ? &re : NULL);
	int rc = regexec(&re, text, n, groups, 0);
	regfree(&re);
	hook_must(rc == 0 || rc == REG_NOMATCH ? &re : NULL);
	return rc == 0;
}

static bool is_one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

static int peek_char(const struct line_reader *r, size_t ahead)
{
	return ahead < r->len - r->at ? (unsigned char)r->s[r->at + ahead] : -1;
}

static const char *find_value(const struct line_reader *r, const char *name, size_t len)
{
	const struct hook_name *v = r->names;

	while (v->name != NULL && (strlen(v->name) != len || memcmp(v->name, name, len) != 0)) {
		v++;
	}
	return v->value;
}

/* Appends words and blanks; two blanks become one. */
static void put_text(struct line_reader *r, const char *text)
{
	bool blank = r->out.len > 0 && r->out.data[r->out.len - 1] == ' ';

	buf_adds(&r->out, text + (blank && text[0] == ' '));
}

static void put_char(struct line_reader *r, int c, bool mask)
{
	bool special = c <= ' ' || is_one_of(c, "$*?[{}!;|&<>()`#");

	put_text(r, mask && special ? HOOK_MASK : (char[]){ (char)c, '\0' });
}

/* Appends the value of the variable; returns its length. */
static size_t read_variable(struct line_reader *r)
{
	size_t from = peek_char(r, 1) == '{' ? 2 : 1, n = from;

	while (peek_char(r, n) == '_' || isalnum(peek_char(r, n)) != 0) {
		n++;
	}
	const char *value = find_value(r, r->s + r->at + from, n - from);
	bool closed = from == 1 || peek_char(r, n) == '}';
	n += n == 1 && is_one_of(peek_char(r, 1), "@*#?-$!");
	put_text(r, closed && value != NULL ? value : "$");
	put_text(r, closed ? "" : "/"); /* a default may name a directory: ${X:-spy} */
	while (!closed && is_one_of(peek_char(r, n), ":+=?-")) {
		n++;
	}
	return n + (closed && from == 2);
}

/* Appends what the reader's character means; returns its length. */
static size_t read_char(struct line_reader *r)
{
	int c = peek_char(r, 0), next = peek_char(r, 1);
	const bool shown = r->how == HOOK_SHOWN, split = r->how == HOOK_SPLIT;
	const bool blank = next < 0 || is_one_of(next, " \t\n;");

	if (shown && (r->quote != 0 ? c == r->quote : is_one_of(c, "'\""))) {
		r->quote = r->quote == 0 ? c : 0;
		return 1;
	}
	if (c == '$' && r->quote != '\'') {
		return read_variable(r);
	}
	if (c == '\\' && shown && r->quote != '\'' && next > 0) {
		put_char(r, next == '\n' ? '\0' : next, next != '\n');
		return 2;
	}
	if (r->quote != 0) {
		put_char(r, c, true);
		return 1;
	}
	if (c == '~' && is_one_of(r->out.data[r->out.len - 1], " =:")) {
		/* "~+" and "~you": only the shell knows */
		bool home = blank || is_one_of(next, "/&|<>'\"");
		const char *value = home ? find_value(r, "HOME", 4) : NULL;
		put_text(r, value != NULL ? value : "$");
		return is_one_of(next, "+-") ? 2 : 1;
	}
	if (c == '\\') {
		bool letter = split && is_one_of(next, "nrtvf_"); /* printf 'cd x\n./y' */
		put_text(r, letter && is_one_of(next, "nr") ? " ; " : split ? " " : "");
		return letter || next == '\n' ? 2 : 1;
	}
	if (c == '>' && next == '&' && isdigit(peek_char(r, 2)) != 0) {
		put_text(r, " ");
		return 3;
	}
	bool twice = is_one_of(c, "&|>") && next == c, empty = c == '{' && next == '}';
	put_text(r, c == '{'                 ? empty   ? "{}"
	                                       : blank ? " ; "
	                                               : "$"
	            : c == '`'               ? next == '/' ? " ; $" : " $ ; "
	            : c == ')'               ? next == '/' ? " ) $" : " ) "
	            : c == '|' && !twice     ? " | "
	            : is_one_of(c, ";&|\n(") ? " ; "
	            : c == '<'               ? " < "
	            : c == '>'               ? " > "
	            : c <= ' '               ? " "
	            : is_one_of(c, "'\"")    ? split ? " " : ""
	            : c == '}'               ? ""
	                                     : (char[]){ (char)c, '\0' });
	return twice || empty ? 2 : 1;
}

char *hook_line_read(const char *line, size_t len, const struct hook_name names[],
                     enum hook_reading how)
{
	struct line_reader r = { .s = line, .len = len, .names = names, .how = how };

	buf_init(&r.out, 16 * MAX_SHELL_BYTES);
	put_text(&r, " ; ");
	while (r.at < len) {
		r.at += read_char(&r);
		if (r.at == len && r.how == HOOK_FLAT && strpbrk(line, "'\"\\") != NULL) {
			put_text(&r, " ; ");
			r.how = HOOK_SPLIT;
			r.at = 0;
		}
	}
	put_text(&r, " ; ");
	return hook_must(buf_steal(&r.out));
}
