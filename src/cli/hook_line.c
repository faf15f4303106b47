/* hook_line.c - see hook_line.h.
 *
 * A masked character is MASK and the character with its highest bit set. A masked '\0' is an
 * empty word. */
#include "cli/hook_line.h"

#include <ctype.h>
#include <string.h>

#include "base/own.h"

#define MAX_REDIRECTS_DEEP 64 /* redirections within the files of others */

#define MASK    '\1'
#define SPECIAL "$*?[{!;|&<>()`"

struct line_reader {
	const char *s;
	size_t len, at;
	const struct hook_name *names;
	struct buf *out;
	struct buf *files; /* of redirections, as in the line; for HOOK_BARE */
	enum hook_reading how;
	bool tick;     /* between backquotes */
	bool has_case; /* behind the ")" of a pattern, a command begins */
};

static bool is_one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

static int peek_char(const struct line_reader *r, size_t ahead)
{
	return ahead < r->len - r->at ? (unsigned char)r->s[r->at + ahead] : -1;
}

static void skip_chars(struct line_reader *r, const char *set)
{
	while (is_one_of(peek_char(r, 0), set)) {
		r->at++;
	}
}

static bool ends_with(const struct buf *out, const char *tail)
{
	size_t n = strlen(tail);

	return out->len >= n && memcmp(out->data + out->len - n, tail, n) == 0;
}

/* Appends words and blanks; two blanks become one. Returns true. */
static bool put_text(struct line_reader *r, const char *text)
{
	buf_adds(r->out, text + (text[0] == ' ' && ends_with(r->out, " ")));
	return true;
}

static void put_literal(struct line_reader *r, int c)
{
	bool masked = c <= ' ' || c == 127 || is_one_of(c, SPECIAL);

	if (r->how != HOOK_EXACT) {
		put_text(r, masked && c <= ' ' ? " " : (char[]){ (char)c, '\0' });
		return;
	}
	if (masked) {
		buf_addc(r->out, MASK);
	}
	buf_addc(r->out, (char)(masked ? c | 0x80 : c));
}

static const char *find_value(const struct line_reader *r, const char *name, size_t len)
{
	for (const struct hook_name *n = r->names; n->name != NULL; n++) {
		if (strlen(n->name) == len && memcmp(n->name, name, len) == 0) {
			return n->value;
		}
	}
	return NULL;
}

static void put_value(struct line_reader *r, const char *value)
{
	for (const char *c = value != NULL ? value : ""; *c != '\0'; c++) {
		put_literal(r, (unsigned char)*c);
	}
	put_text(r, value != NULL ? "" : "$");
}

/* `quoted`: within double quotes, where a value is not split and is not a pattern. */
static bool read_variable(struct line_reader *r, bool quoted)
{
	int next = peek_char(r, 1);
	size_t braced = next == '{', n = 0;

	while (peek_char(r, 1 + braced + n) == '_' || isalnum(peek_char(r, 1 + braced + n)) != 0) {
		n++;
	}
	bool closed = braced == 0 || (n > 0 && peek_char(r, 2 + n) == '}');
	bool special = n == 0 && braced == 0 && is_one_of(next, "@*#?-$![");
	if (r->how == HOOK_EXACT &&
	    (!closed || next == '(' || (is_one_of(next, "'\"") && !quoted))) {
		return false;
	}
	const char *value = closed && n > 0 ? find_value(r, r->s + r->at + 1 + braced, n) : NULL;
	r->at += 1 + braced + n + special + (closed ? braced : 0);
	if (r->how == HOOK_EXACT && n == 0 && !special) {
		put_literal(r, '$');
	} else if (r->how == HOOK_EXACT && !quoted && value != NULL &&
	           value[strcspn(value, " \t\n*?[\\")] != '\0') {
		put_text(r, "$");
	} else {
		put_value(r, value);
	}
	put_text(r, closed ? "" : "/"); /* a default may name a directory: ${X:-spy} */
	while (!closed && is_one_of(peek_char(r, 0), ":+=?-")) {
		r->at++;
	}
	return true;
}

static bool read_quoted(struct line_reader *r, int quote)
{
	bool twice = quote == '"';

	for (r->at++; peek_char(r, 0) != quote;) {
		int c = peek_char(r, 0), next = peek_char(r, 1);
		if (c <= 0 || (twice && (c == '`' || (c == '\\' && next == '\n')))) {
			return false;
		}
		if (twice && c == '$') {
			if (!read_variable(r, true)) {
				return false;
			}
			continue;
		}
		r->at += twice && c == '\\' && is_one_of(next, "$`\"\\") ? 2 : 1;
		if (twice && c == '!') { /* the history of an interactive shell */
			put_text(r, "!");
		} else {
			put_literal(r, (unsigned char)r->s[r->at - 1]);
		}
	}
	r->at++;
	if (ends_with(r->out, " ")) {
		put_literal(r, '\0');
	}
	return true;
}

static bool read_escape(struct line_reader *r)
{
	int next = peek_char(r, 1);
	bool split = r->how == HOOK_SPLIT, letter = split && is_one_of(next, "nrtvf_");

	if (next == '\n' || r->how == HOOK_EXACT) {
		r->at += 2;
		if (next > 0 && next != '\n') {
			put_literal(r, next);
		}
		return next > 0;
	}
	r->at += letter ? 2 : 1; /* printf 'cd x\n./y' */
	return put_text(r, letter && is_one_of(next, "nr") ? " ; " : split ? " " : "");
}

/* Of file descriptors, only 1 and 2 are simple: "2> x", ">> x", "2>&1". */
static bool read_redirect(struct line_reader *r, int c)
{
	size_t n = is_one_of(c, "12") ? 1 : 0;
	bool other_fd = n == 0 && r->at > 0 && isdigit((unsigned char)r->s[r->at - 1]) != 0;

	n += peek_char(r, n) == '>' && is_one_of(peek_char(r, n + 1), ">&") ? 2 : 1;
	bool to_fd = r->s[r->at + n - 1] == '&';
	n += to_fd;
	put_text(r, " ");
	if (other_fd || ends_with(r->out, "> ") || ends_with(r->out, "< ") ||
	    (to_fd && !is_one_of(peek_char(r, n - 1), "12"))) {
		return false;
	}
	buf_add(r->out, r->s + r->at, to_fd ? n - 2 : n);
	if (to_fd) {
		put_literal(r, '&');
		buf_addc(r->out, r->s[r->at + n - 1]);
	}
	put_text(r, " ");
	r->at += n;
	if (to_fd) {
		return peek_char(r, 0) < 0 || is_one_of(peek_char(r, 0), " \t\n;|");
	}
	skip_chars(r, " \t");
	return peek_char(r, 0) >= 0 && !is_one_of(peek_char(r, 0), "<>&|(;#\n");
}

/* Moves behind the redirection and its file, which may be quoted, or a substitution. A quote may be
 * a closing one, so what is left out is read later. */
static void leave_out_redirect(struct line_reader *r)
{
	size_t deep = 0, from = 0;
	int quote = 0;

	while (isdigit((unsigned char)r->out->data[r->out->len - 1]) != 0) {
		r->out->data[--r->out->len] = '\0'; /* "2" of "2>" */
	}
	skip_chars(r, "<>&|");
	skip_chars(r, " \t");
	for (from = r->at; r->at < r->len; r->at++) {
		int c = peek_char(r, 0);
		if (c == '\\' && quote != '\'') {
			r->at += r->at + 1 < r->len;
		} else if (quote != 0) {
			quote = c == quote ? 0 : quote;
		} else if (is_one_of(c, "'\"`")) {
			quote = c;
		} else if (c == '(' || (c == ')' && deep > 0)) {
			deep = c == '(' ? deep + 1 : deep - 1;
		} else if (deep == 0 && is_one_of(c, " \t\n;&|<>)")) {
			break;
		}
	}
	buf_adds(r->files, ": "); /* not the program of a command */
	buf_add(r->files, r->s + from, r->at - from);
	buf_addc(r->files, '\n');
	put_text(r, " ");
}

static bool read_operator(struct line_reader *r, int c)
{
	bool twice = is_one_of(c, "&|") && peek_char(r, 1) == c;

	r->at += twice ? 2 : 1;
	if (r->how != HOOK_EXACT) {
		return put_text(r, c == '|' && !twice ? " | " : " ; ");
	}
	put_text(r, " ");
	if (ends_with(r->out, "; ") || ends_with(r->out, "| ") || ends_with(r->out, "& ")) {
		return c == '\n'; /* no command before it */
	}
	if (twice) {
		return put_text(r, c == '|' ? "|| " : "&& ");
	}
	return c != '&' && !(c == '|' && peek_char(r, 0) == '&') &&
	       put_text(r, c == '|' ? "| " : "; ");
}

/* Of these, "{}" and a brace within a word are simple. */
static bool read_bracket(struct line_reader *r, int c)
{
	int next = peek_char(r, 1);
	bool group = next < 0 || is_one_of(next, " \t\n;"), starts = ends_with(r->out, " ");

	r->at++;
	if (c == '{' && next == '}') { /* of find */
		r->at++;
		put_literal(r, '{');
		return put_text(r, "}");
	}
	if (r->how == HOOK_EXACT) {
		return is_one_of(c, "{}") && !(starts && group) &&
		       put_text(r, c == '{' ? "$" : "}");
	}
	if (c == '{' || c == '}') {
		return put_text(r, c == '}' ? "" : group ? " ; " : "$");
	}
	r->tick = c == '`' ? !r->tick : r->tick;
	if (c == '(' || (c == '`' && r->tick)) {
		return put_text(r, c == '(' ? " ; " : "$ ; ");
	}
	bool goes_on = peek_char(r, 0) == '/'; /* $(a)/b: the directory is unknown */
	return put_text(r, r->has_case ? " ; " : goes_on ? " ) *" : " ) ");
}

/* A character that is neither a quote nor an operator. */
static bool read_other(struct line_reader *r, int c)
{
	bool exact = r->how == HOOK_EXACT, starts = ends_with(r->out, " ");
	int next = peek_char(r, 1);
	const char text[] = { (char)c, '\0' };

	starts = starts || (!exact && (ends_with(r->out, "=") || ends_with(r->out, ":")));
	r->at++;
	if (c == '#' && starts && exact) {
		const char *end = memchr(r->s + r->at, '\n', r->len - r->at);
		r->at = end != NULL ? (size_t)(end - r->s) : r->len;
		return true;
	}
	/* In arguments like x=~ and x=a:~, only bash knows "~". */
	bool assigns = exact && (ends_with(r->out, "=") || ends_with(r->out, ":"));
	bool quoted = exact && is_one_of(next, "'\"");
	if (c == '~' && !quoted &&
	    (starts || assigns)) { /* "~+" and "~you": only the shell knows */
		bool home = next < 0 || is_one_of(next, "/ \t\n;&|<>'\"");
		const char *value = home ? find_value(r, "HOME", 4) : NULL;
		r->at += is_one_of(next, "+-");
		put_value(r, value);
		return !exact || (value != NULL && !assigns);
	}
	if (is_one_of(c, " \t") || (!exact && c < ' ')) {
		return put_text(r, " ");
	}
	/* No name contains a control character, and only zsh expands "=program". */
	bool odd = c < ' ' || c == 127 || (c == '=' && starts && exact);
	return put_text(r, odd ? "?" : text) && c != '\0';
}

static bool read_char(struct line_reader *r)
{
	int c = peek_char(r, 0);
	bool exact = r->how == HOOK_EXACT, quotes = is_one_of(c, "'\"");
	bool redirects = is_one_of(c, "<>") || (exact && is_one_of(c, "12") &&
	                                        ends_with(r->out, " ") && peek_char(r, 1) == '>');

	if (r->how == HOOK_BARE && (redirects || (c == '&' && peek_char(r, 1) == '>'))) {
		leave_out_redirect(r);
		return true;
	}
	if (!exact && (quotes || redirects)) {
		r->at++;
		return put_text(r, redirects ? " < " : r->how == HOOK_SPLIT ? " " : "");
	}
	return c == '$'                ? read_variable(r, false)
	       : c == '\\'             ? read_escape(r)
	       : quotes                ? read_quoted(r, c)
	       : redirects             ? read_redirect(r, c)
	       : is_one_of(c, ";&|\n") ? read_operator(r, c)
	       : is_one_of(c, "(){}`") ? read_bracket(r, c)
	                               : read_other(r, c);
}

bool hook_line_read(struct buf *out, const char *line, size_t len, const struct hook_name names[],
                    enum hook_reading how)
{
	auto_buf files = BUF(out->cap), again = BUF(out->cap);
	struct line_reader r = {
		.s = line, .len = len, .names = names, .out = out, .files = &files, .how = how
	};
	bool simple = true;

	r.has_case = memmem(line, len, "case", 4) != NULL;
	put_text(&r, " ; ");
	for (size_t deep = 0; r.at < r.len; deep++) {
		while (r.at < r.len && !out->failed && (simple || how != HOOK_EXACT)) {
			simple = read_char(&r);
		}
		out->failed = out->failed || files.failed || deep == MAX_REDIRECTS_DEEP;
		if (files.len == 0 || out->failed) {
			break;
		}
		buf_reset(&again);
		buf_add(&again, files.data, files.len);
		buf_reset(&files);
		out->failed = again.failed;
		put_text(&r, " ; ");
		r.s = again.data;
		r.len = again.len;
		r.at = 0;
	}
	put_text(&r, " ");
	simple = simple && !ends_with(out, "& ") && !ends_with(out, "| ");
	put_text(&r, ends_with(out, "; ") ? "" : "; ");
	return simple || how != HOOK_EXACT;
}

void hook_line_unmask(char *word)
{
	char *to = word;

	for (const char *c = word; *c != '\0'; c++) {
		if (*c != MASK) {
			*to++ = *c;
		} else if ((*++c & 0x7f) != 0) {
			*to++ = (char)(*c & 0x7f);
		}
	}
	*to = '\0';
}
