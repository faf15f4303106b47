/* shell_words.c - words and their quotes; see shell_words.h. */
#include "cli/shell_priv.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"

int shell_look(const struct parse *p, size_t ahead)
{
	return ahead < p->len - p->at ? (unsigned char)p->s[p->at + ahead] : -1;
}

bool shell_one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

static void put_char(struct making *m, char c, bool quoted)
{
	buf_addc(&m->text, c);
	if (quoted && shell_one_of((unsigned char)c, "*?[]{},\\~")) {
		buf_addc(&m->pattern, '\\');
	}
	buf_addc(&m->pattern, c);
	m->begun = true;
}

/* Whatever it may become. */
static void put_unknown(struct making *m)
{
	buf_addc(&m->text, '*');
	buf_addc(&m->pattern, '*');
	m->plain = false;
	m->unknown = true;
	m->begun = true;
}

void shell_read_within(struct parse *p, struct making *m, char stop)
{
	put_unknown(m);
	/* Backslashes mean other things between backquotes, and all does in "((". */
	p->line->broken = p->line->broken || stop == '`' || shell_look(p, 0) == '(';
	if (p->depth >= MAX_SHELL_DEPTH) {
		p->line->broken = true;
		p->at = p->len;
		return;
	}
	p->depth++;
	shell_read_list(p, stop, SHELL_WITHIN);
	p->depth--;
	if (shell_look(p, 0) < 0) {
		p->line->broken = true;
		return;
	}
	p->at++;
}

/* A value without quotes around it is split and globbed. */
static void put_variable(const struct parse *p, struct making *m, const char *name, size_t len,
                         bool quoted)
{
	const char *value = NULL;

	for (const struct shell_name *n = p->names; n->name != NULL; n++) {
		if (strlen(n->name) == len && memcmp(n->name, name, len) == 0) {
			value = n->value;
			m->plain = m->plain && !n->about;
		}
	}
	if (value == NULL || (!quoted && value[strcspn(value, " \t\n*?[\\")] != '\0')) {
		put_unknown(m);
		return;
	}
	for (; *value != '\0'; value++) {
		put_char(m, *value, true);
	}
}

static size_t name_length(const struct parse *p, size_t from)
{
	size_t n = 0;

	while (shell_look(p, from + n) == '_' || isalnum(shell_look(p, from + n)) != 0) {
		n++;
	}
	return n;
}

static void read_dollar(struct parse *p, struct making *m, bool quoted);

/* What stands behind the name in "${NAME:-...}": of interest are the commands in it, and where it
 * ends. */
static void read_default(struct parse *p, struct making *m, bool quoted)
{
	bool within = false; /* double quotes of its own */
	int c;

	while ((c = shell_look(p, 0)) >= 0 && (c != '}' || within)) {
		if (c == '$' && shell_one_of(shell_look(p, 1), "({")) {
			read_dollar(p, m, quoted || within);
			continue;
		}
		p->at++;
		if (c == '`') {
			shell_read_within(p, m, '`');
		} else if (c == '\'' && !quoted && !within) {
			const char *end = memchr(p->s + p->at, '\'', p->len - p->at);
			p->at = end != NULL ? (size_t)(end - p->s) + 1 : p->len;
		} else if (c == '\\' && shell_look(p, 0) >= 0) {
			p->at++;
		} else if (c == '"') {
			within = !within;
		}
	}
	p->at += c >= 0;
}

/* "${NAME}", or anything up to the brace that closes it. */
static void read_braced(struct parse *p, struct making *m, bool quoted)
{
	size_t n = name_length(p, 2);

	if (n > 0 && shell_look(p, 2 + n) == '}') {
		put_variable(p, m, p->s + p->at + 2, n, quoted);
		p->at += n + 3;
		return;
	}
	put_unknown(m);
	p->line->broken = true;
	p->at += 2;
	if (p->depth >= MAX_SHELL_DEPTH) {
		p->at = p->len;
		return;
	}
	p->depth++;
	read_default(p, m, quoted);
	p->depth--;
}

/* One escape of $'...'; we stand behind the backslash. */
static void read_ansi_escape(struct parse *p, struct making *m)
{
	static const char FROM[] = "abeEfnrtv\\'\"?", TO[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	int c = shell_look(p, 0);
	const char *simple = c > 0 ? strchr(FROM, c) : NULL;
	unsigned value = 0;
	size_t n = 0;

	p->at += c >= 0;
	if (simple != NULL) {
		put_char(m, TO[simple - FROM], true);
		return;
	}
	if (c == 'x') {
		for (int digit; n < 2 && (digit = hex_digit((char)shell_look(p, 0))) >= 0;
		     n++, p->at++) {
			value = value * 16 + (unsigned)digit;
		}
	} else if (c >= '0' && c <= '7') {
		value = (unsigned)(c - '0');
		for (n = 1; n < 3 && shell_look(p, 0) >= '0' && shell_look(p, 0) <= '7';
		     n++, p->at++) {
			value = value * 8 + (unsigned)(shell_look(p, 0) - '0');
		}
	}
	if (n == 0 || value == 0 || value > 255) {
		put_unknown(m);
		return;
	}
	put_char(m, (char)value, true);
}

/* $'...': we stand behind its first quote. It is read, and never called plain: not
 * every shell knows it. */
static void read_ansi(struct parse *p, struct making *m)
{
	m->plain = false;
	m->begun = true;
	while (shell_look(p, 0) >= 0 && shell_look(p, 0) != '\'') {
		int c = shell_look(p, 0);
		p->at++;
		if (c == '\\') {
			read_ansi_escape(p, m);
		} else {
			put_char(m, (char)c, true);
		}
	}
	p->line->broken = p->line->broken || shell_look(p, 0) < 0;
	p->at += shell_look(p, 0) >= 0;
}

static void read_dollar(struct parse *p, struct making *m, bool quoted)
{
	int c = shell_look(p, 1);
	size_t n = name_length(p, 1);

	if (c == '(') {
		p->at += 2;
		shell_read_within(p, m, ')');
	} else if (c == '{') {
		read_braced(p, m, quoted);
	} else if (c == '\'' && !quoted) {
		p->at += 2;
		m->bare = false;
		read_ansi(p, m);
	} else if (c == '"' && !quoted) {
		p->at++; /* translated: the quotes follow */
		m->plain = false;
	} else if (n > 0 && isdigit(c) == 0) {
		put_variable(p, m, p->s + p->at + 1, n, quoted);
		p->at += n + 1;
	} else if (shell_one_of(c, "@*#?-$!0123456789[")) {
		put_unknown(m);
		p->at += 2;
	} else {
		put_char(m, '$', true);
		p->at++;
	}
}

static void read_single(struct parse *p, struct making *m)
{
	m->begun = true;
	m->bare = false;
	for (p->at++; shell_look(p, 0) >= 0 && shell_look(p, 0) != '\''; p->at++) {
		put_char(m, p->s[p->at], true);
	}
	p->line->broken = p->line->broken || shell_look(p, 0) < 0;
	p->at += shell_look(p, 0) >= 0;
}

static void read_double(struct parse *p, struct making *m)
{
	m->begun = true;
	m->bare = false;
	for (p->at++; shell_look(p, 0) >= 0 && shell_look(p, 0) != '"';) {
		int c = shell_look(p, 0);
		if (c == '$') {
			read_dollar(p, m, true);
		} else if (c == '`') {
			p->at++;
			shell_read_within(p, m, '`');
		} else if (c == '\\' && shell_look(p, 1) == '\n') {
			p->at += 2;
		} else if (c == '\\' && shell_one_of(shell_look(p, 1), "$`\"\\")) {
			put_char(m, p->s[p->at + 1], true);
			p->at += 2;
		} else {
			/* An interactive shell would look for history behind it. */
			m->plain = m->plain && c != '!';
			put_char(m, (char)c, true);
			p->at++;
		}
	}
	p->line->broken = p->line->broken || shell_look(p, 0) < 0;
	p->at += shell_look(p, 0) >= 0;
}

static void read_escape(struct parse *p, struct making *m)
{
	int c = shell_look(p, 1);

	p->at += 2;
	if (c < 0) {
		p->at = p->len;
		p->line->broken = true;
	} else if (c != '\n') {
		m->bare = false;
		put_char(m, (char)c, true);
	}
}

/* "~" is the home; of "~+", "~-", "~1", "~you" only the shell knows what they are. */
static void read_tilde(struct parse *p, struct making *m)
{
	size_t n = 1;

	while (isalnum(shell_look(p, n)) != 0 || shell_one_of(shell_look(p, n), "+-._")) {
		n++;
	}
	if (n == 1) {
		put_variable(p, m, "HOME", 4, true);
	} else {
		put_unknown(m);
	}
	p->at += n;
}

static void read_other(struct parse *p, struct making *m)
{
	int c = shell_look(p, 0);
	bool first = !m->begun;

	if (c == '~' && first) {
		read_tilde(p, m);
		return;
	}
	/* What a shell would replace, and control characters, which no name has. */
	if (shell_one_of(c, "*?[{") || (c == '=' && first) || c < ' ' || c == 127) {
		m->plain = false;
	}
	put_char(m, (char)c, false);
	p->at++;
}

bool shell_ends_word(const struct parse *p, char stop)
{
	int c = shell_look(p, 0);

	return c < 0 || c == '\0' || shell_one_of(c, " \t\n;&|<>()") || (stop == '`' && c == '`');
}

void making_done(struct making *m)
{
	buf_done(&m->text);
	buf_done(&m->pattern);
}

bool shell_read_word(struct parse *p, char stop, struct shell_word *ret)
{
	AUTO(making_done) struct making m = { .plain = true, .bare = true };

	buf_init(&m.text, p->len + MAX_PATH_BYTES);
	buf_init(&m.pattern, 2 * p->len + MAX_PATH_BYTES);
	buf_adds(&m.text, "");
	buf_adds(&m.pattern, "");
	while (!shell_ends_word(p, stop)) {
		int c = shell_look(p, 0);
		if (c == '\'') {
			read_single(p, &m);
		} else if (c == '"') {
			read_double(p, &m);
		} else if (c == '\\') {
			read_escape(p, &m);
		} else if (c == '$') {
			read_dollar(p, &m, false);
		} else if (c == '`') {
			p->at++;
			shell_read_within(p, &m, '`');
		} else {
			read_other(p, &m);
		}
	}
	struct shell_word w = { buf_steal(&m.text), buf_steal(&m.pattern), m.plain, m.bare,
		                m.unknown };
	if (w.text == NULL || w.pattern == NULL || ++p->n_words > MAX_SHELL_WORDS) {
		free(w.text);
		free(w.pattern);
		p->failed = true;
		return false;
	}
	*ret = w;
	return true;
}

bool shell_assigns(const struct shell_word *w)
{
	size_t n = 0;

	while (w->text[n] == '_' || isalnum((unsigned char)w->text[n]) != 0) {
		n++;
	}
	return n > 0 && isdigit((unsigned char)w->text[0]) == 0 &&
	       (w->text[n] == '=' || w->text[n] == '[' ||
	        (w->text[n] == '+' && w->text[n + 1] == '='));
}
