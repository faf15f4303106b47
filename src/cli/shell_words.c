/* shell_words.c - see shell_words.h. Recursive descent over one text; a list ends
 * at its closing character, a command at an operator, a word at a blank. */
#include "cli/shell_words.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"

#define MAX_FD_DIGITS 3

struct parse {
	const char *s;
	size_t len;
	size_t at;
	const struct shell_name *names;
	struct shell_line *line;
	unsigned depth;
	size_t n_words;
	bool failed;
};

/* One word while it is read. */
struct making {
	struct buf text;
	struct buf pattern;
	bool plain;
	bool bare;
	bool begun; /* also by an empty pair of quotes */
};

static void read_list(struct parse *p, char stop, enum shell_join join);

/* The character `ahead` of where we stand; -1 past the end. */
static int look(const struct parse *p, size_t ahead)
{
	return ahead < p->len - p->at ? (unsigned char)p->s[p->at + ahead] : -1;
}

static bool one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

static void *grown(void *v, size_t n, size_t size)
{
	/* Doubled at each power of two. */
	return (n & (n - 1)) != 0 ? v : reallocarray(v, n == 0 ? 1 : n * 2, size);
}

static void put_char(struct making *m, char c, bool quoted)
{
	buf_addc(&m->text, c);
	if (quoted && one_of((unsigned char)c, "*?[]{},\\~")) {
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
	m->begun = true;
}

/* A list inside a word, up to `stop`; the word holds what it prints. */
static void read_within(struct parse *p, struct making *m, char stop)
{
	put_unknown(m);
	/* Backslashes mean other things between backquotes, and all does in "((". */
	p->line->broken = p->line->broken || stop == '`' || look(p, 0) == '(';
	if (p->depth >= MAX_SHELL_DEPTH) {
		p->line->broken = true;
		p->at = p->len;
		return;
	}
	p->depth++;
	read_list(p, stop, SHELL_WITHIN);
	p->depth--;
	if (look(p, 0) < 0) {
		p->line->broken = true;
		return;
	}
	p->at++;
}

static const char *known(const struct parse *p, const char *name, size_t len)
{
	for (const struct shell_name *n = p->names; n->name != NULL; n++) {
		if (strlen(n->name) == len && memcmp(n->name, name, len) == 0) {
			return n->value;
		}
	}
	return NULL;
}

/* A value without quotes around it is split and globbed. */
static void put_value(struct making *m, const char *value, bool quoted)
{
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

	while (look(p, from + n) == '_' || isalnum(look(p, from + n)) != 0) {
		n++;
	}
	return n;
}

/* "${NAME}", or anything up to the brace that closes it. */
static void read_braced(struct parse *p, struct making *m, bool quoted)
{
	size_t n = name_length(p, 2);

	if (n > 0 && look(p, 2 + n) == '}') {
		put_value(m, known(p, p->s + p->at + 2, n), quoted);
		p->at += n + 3;
		return;
	}
	unsigned deep = 0;
	put_unknown(m);
	p->line->broken = true;
	for (; look(p, 0) >= 0; p->at++) {
		if (look(p, 0) == '{') {
			deep++;
		} else if (look(p, 0) == '}' && --deep == 0) {
			p->at++;
			return;
		}
	}
}

static int hex_value(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* One escape of $'...'; we stand behind the backslash. */
static void read_ansi_escape(struct parse *p, struct making *m)
{
	static const char FROM[] = "abeEfnrtv\\'\"?", TO[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
	int c = look(p, 0);
	const char *simple = c > 0 ? strchr(FROM, c) : NULL;
	unsigned value = 0;
	size_t n = 0;

	p->at += c >= 0;
	if (simple != NULL) {
		put_char(m, TO[simple - FROM], true);
		return;
	}
	if (c == 'x') {
		for (; n < 2 && hex_value(look(p, 0)) >= 0; n++, p->at++) {
			value = value * 16 + (unsigned)hex_value(look(p, 0));
		}
	} else if (c >= '0' && c <= '7') {
		value = (unsigned)(c - '0');
		for (n = 1; n < 3 && look(p, 0) >= '0' && look(p, 0) <= '7'; n++, p->at++) {
			value = value * 8 + (unsigned)(look(p, 0) - '0');
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
	while (look(p, 0) >= 0 && look(p, 0) != '\'') {
		int c = look(p, 0);
		p->at++;
		if (c == '\\') {
			read_ansi_escape(p, m);
		} else {
			put_char(m, (char)c, true);
		}
	}
	p->line->broken = p->line->broken || look(p, 0) < 0;
	p->at += look(p, 0) >= 0;
}

static void read_dollar(struct parse *p, struct making *m, bool quoted)
{
	int c = look(p, 1);
	size_t n = name_length(p, 1);

	if (c == '(') {
		p->at += 2;
		read_within(p, m, ')');
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
		put_value(m, known(p, p->s + p->at + 1, n), quoted);
		p->at += n + 1;
	} else if (one_of(c, "@*#?-$!0123456789[")) {
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
	for (p->at++; look(p, 0) >= 0 && look(p, 0) != '\''; p->at++) {
		put_char(m, p->s[p->at], true);
	}
	p->line->broken = p->line->broken || look(p, 0) < 0;
	p->at += look(p, 0) >= 0;
}

static void read_double(struct parse *p, struct making *m)
{
	m->begun = true;
	m->bare = false;
	for (p->at++; look(p, 0) >= 0 && look(p, 0) != '"';) {
		int c = look(p, 0);
		if (c == '$') {
			read_dollar(p, m, true);
		} else if (c == '`') {
			p->at++;
			read_within(p, m, '`');
		} else if (c == '\\' && look(p, 1) == '\n') {
			p->at += 2;
		} else if (c == '\\' && one_of(look(p, 1), "$`\"\\")) {
			put_char(m, p->s[p->at + 1], true);
			p->at += 2;
		} else {
			/* An interactive shell would look for history behind it. */
			m->plain = m->plain && c != '!';
			put_char(m, (char)c, true);
			p->at++;
		}
	}
	p->line->broken = p->line->broken || look(p, 0) < 0;
	p->at += look(p, 0) >= 0;
}

static void read_escape(struct parse *p, struct making *m)
{
	int c = look(p, 1);

	p->at += 2;
	if (c < 0) {
		p->at = p->len;
		p->line->broken = true;
	} else if (c != '\n') {
		m->bare = false;
		put_char(m, (char)c, true);
	}
}

static void read_other(struct parse *p, struct making *m)
{
	int c = look(p, 0);
	bool first = !m->begun;

	if (c == '~' && first && (look(p, 1) == '/' || one_of(look(p, 1), " \t\n;&|<>") ||
	                          look(p, 1) < 0)) {
		put_value(m, known(p, "HOME", 4), true);
		p->at++;
		return;
	}
	/* What a shell would replace, and control characters, which no name has. */
	if (one_of(c, "*?[{") || (c == '~' && first) || (c == '=' && first) || c < ' ' ||
	    c == 127) {
		m->plain = false;
	}
	put_char(m, (char)c, false);
	p->at++;
}

static bool ends_word(const struct parse *p, char stop)
{
	int c = look(p, 0);

	return c < 0 || c == '\0' || one_of(c, " \t\n;&|<>()") || (stop == '`' && c == '`');
}

static void making_done(struct making *m)
{
	buf_done(&m->text);
	buf_done(&m->pattern);
}

/* The word that begins here. False: out of memory. */
static bool read_word(struct parse *p, char stop, struct shell_word *ret)
{
	AUTO(making_done) struct making m = { .plain = true, .bare = true };

	buf_init(&m.text, p->len + MAX_PATH_BYTES);
	buf_init(&m.pattern, 2 * p->len + MAX_PATH_BYTES);
	buf_adds(&m.text, "");
	buf_adds(&m.pattern, "");
	while (!ends_word(p, stop)) {
		int c = look(p, 0);
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
			read_within(p, &m, '`');
		} else {
			read_other(p, &m);
		}
	}
	struct shell_word w = { buf_steal(&m.text), buf_steal(&m.pattern), m.plain, m.bare };
	if (w.text == NULL || w.pattern == NULL || ++p->n_words > MAX_SHELL_WORDS) {
		free(w.text);
		free(w.pattern);
		p->failed = true;
		return false;
	}
	*ret = w;
	return true;
}

static void word_done(struct shell_word *w)
{
	free(w->text);
	free(w->pattern);
}

static void command_done(struct shell_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		word_done(&c->words[i]);
	}
	for (size_t i = 0; i < c->n_redirects; i++) {
		word_done(&c->redirects[i].target);
	}
	free(c->words);
	free(c->redirects);
}

void shell_done(struct shell_line *line)
{
	for (size_t i = 0; i < line->n_commands; i++) {
		command_done(&line->commands[i]);
	}
	free(line->commands);
	*line = (struct shell_line){ 0 };
}

/* Where a redirection stands: the length of its digits and operator; 0: none. */
static size_t redirect_length(const struct parse *p)
{
	static const char *const OPS[] = { "&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<",
		                           ">>",  ">&", ">|",  ">" };
	size_t digits = 0;

	while (isdigit(look(p, digits)) != 0) {
		digits++;
	}
	if (digits > MAX_FD_DIGITS) {
		p->line->broken = p->line->broken || one_of(look(p, digits), "<>");
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(OPS); i++) {
		size_t n = strlen(OPS[i]);
		if (n <= p->len - p->at - digits &&
		    memcmp(p->s + p->at + digits, OPS[i], n) == 0 && !(digits > 0 && *OPS[i] == '&')) {
			return digits + n;
		}
	}
	return 0;
}

static void skip_comment(struct parse *p)
{
	while (look(p, 0) >= 0 && look(p, 0) != '\n') {
		p->at++;
	}
}

static void add_word(struct parse *p, struct shell_command *c, char stop)
{
	void *v = grown(c->words, c->n_words, sizeof(*c->words));

	if (v == NULL) {
		p->failed = true;
		return;
	}
	c->words = v;
	c->n_words += read_word(p, stop, &c->words[c->n_words]);
}

static void add_redirect(struct parse *p, struct shell_command *c, size_t len, char stop)
{
	struct shell_redirect r = { 0 };
	void *v = grown(c->redirects, c->n_redirects, sizeof(*c->redirects));

	if (v == NULL) {
		p->failed = true;
		return;
	}
	c->redirects = v;
	memcpy(r.op, p->s + p->at, len);
	p->at += len;
	if (strstr(r.op, "<<") != NULL) {
		p->line->broken = true;
	}
	while (one_of(look(p, 0), " \t")) {
		p->at++;
	}
	if (ends_word(p, stop)) {
		p->line->broken = true; /* nothing there to redirect to */
		return;
	}
	if (read_word(p, stop, &r.target)) {
		c->redirects[c->n_redirects++] = r;
	}
}

static void substitute_process(struct parse *p, struct shell_command *c)
{
	void *v = grown(c->words, c->n_words, sizeof(*c->words));
	struct making m = { 0 };

	if (v == NULL) {
		p->failed = true;
		return;
	}
	c->words = v;
	p->at += 2;
	buf_init(&m.text, 8);
	buf_init(&m.pattern, 8);
	read_within(p, &m, ')');
	c->words[c->n_words] = (struct shell_word){ buf_steal(&m.text), buf_steal(&m.pattern),
		                                    false, false };
	c->n_words++;
	p->failed = p->failed || c->words[c->n_words - 1].text == NULL ||
	            c->words[c->n_words - 1].pattern == NULL;
}

static bool is_compound(const struct shell_command *c)
{
	static const char *const KEYWORDS[] = { "if",    "then",   "elif", "else", "fi",
		                                "for",   "while",  "until", "do",   "done",
		                                "case",  "esac",   "in",   "{",    "}",
		                                "[[",    "select", "!",    "coproc", "function" };

	for (size_t i = 0; c->n_words > 0 && c->words[0].bare && i < ARRAY_LEN(KEYWORDS); i++) {
		if (strcmp(c->words[0].text, KEYWORDS[i]) == 0) {
			return true;
		}
	}
	return false;
}

static void keep_command(struct parse *p, struct shell_command *c)
{
	struct shell_line *line = p->line;
	void *v = grown(line->commands, line->n_commands, sizeof(*line->commands));

	if (v == NULL || line->n_commands >= MAX_SHELL_COMMANDS) {
		line->commands = v != NULL ? v : line->commands;
		command_done(c);
		p->failed = true;
		return;
	}
	line->commands = v;
	line->broken = line->broken || is_compound(c);
	line->commands[line->n_commands++] = *c;
}

static void read_command(struct parse *p, char stop, enum shell_join join)
{
	struct shell_command c = { .join = join };

	while (!p->failed && look(p, 0) >= 0 && !(stop == '`' && look(p, 0) == '`')) {
		size_t redirect = redirect_length(p);
		if (one_of(look(p, 0), " \t")) {
			p->at++;
		} else if (look(p, 0) == '\\' && look(p, 1) == '\n') {
			p->at += 2;
		} else if (look(p, 0) == '#') {
			skip_comment(p);
		} else if (one_of(look(p, 0), "<>") && look(p, 1) == '(') {
			substitute_process(p, &c);
		} else if (redirect > 0) {
			add_redirect(p, &c, redirect, stop);
		} else if (ends_word(p, stop)) {
			break;
		} else {
			add_word(p, &c, stop);
		}
	}
	keep_command(p, &c);
}

/* An operator between commands: how the next one is joined. */
static enum shell_join read_operator(struct parse *p)
{
	int c = look(p, 0), next = look(p, 1);

	p->at++;
	if (c == '&' && next == '&') {
		p->at++;
		return SHELL_AND;
	}
	if (c == '|' && next == '|') {
		p->at++;
		return SHELL_OR;
	}
	if (c == '|') {
		p->at += next == '&';
		return SHELL_PIPE;
	}
	if (c == '&') {
		p->line->beside = true;
		return SHELL_BESIDE;
	}
	return SHELL_THEN;
}

static void read_subshell(struct parse *p)
{
	struct making m = { .plain = true };

	buf_init(&m.text, 8);
	buf_init(&m.pattern, 8);
	p->at++;
	read_within(p, &m, ')');
	making_done(&m);
}

/* Commands up to `stop`, which is left where it stands; 0: to the end. */
static void read_list(struct parse *p, char stop, enum shell_join join)
{
	while (!p->failed && look(p, 0) >= 0) {
		int c = look(p, 0);
		if (stop != '\0' && c == stop) {
			return;
		}
		if (c == '#') {
			skip_comment(p);
		} else if (one_of(c, " \t")) {
			p->at++;
		} else if (c == '\n') {
			p->at++; /* after an operator it means nothing, after a command it is one */
		} else if (one_of(c, ";&|") && redirect_length(p) == 0) {
			join = read_operator(p);
		} else if (c == '(') {
			read_subshell(p);
			join = SHELL_WITHIN;
		} else if (c == ')' || c == '\0') {
			p->line->broken = true;
			p->at++;
		} else {
			read_command(p, stop, join);
			join = SHELL_THEN;
		}
	}
}

int shell_parse(const char *text, size_t len, const struct shell_name names[],
                struct shell_line *ret)
{
	struct shell_line line = { 0 };
	struct parse p = { .s = text, .len = len, .names = names, .line = &line };

	if (len > MAX_SHELL_BYTES) {
		return -1;
	}
	line.broken = memchr(text, '\0', len) != NULL;
	read_list(&p, '\0', SHELL_FIRST);
	if (p.failed) {
		shell_done(&line);
		return -1;
	}
	*ret = line;
	return 0;
}

bool shell_assigns(const struct shell_word *w)
{
	size_t n = 0;

	while (w->text[n] == '_' || isalnum((unsigned char)w->text[n]) != 0) {
		n++;
	}
	return n > 0 && isdigit((unsigned char)w->text[0]) == 0 &&
	       (w->text[n] == '=' || w->text[n] == '[' || (w->text[n] == '+' && w->text[n + 1] == '='));
}

void shell_quote(struct buf *out, const char *text)
{
	static const char SAFE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                           "0123456789_-./:,@%+";

	if (*text != '\0' && text[strspn(text, SAFE)] == '\0') {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			buf_adds(out, "'\\''");
		} else {
			buf_addc(out, *text);
		}
	}
	buf_addc(out, '\'');
}
