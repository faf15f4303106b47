/* shell_line.c - lists of commands; see shell_words.h. Recursive descent over one
 * text: a list ends at its closing character, a command at an operator. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/shell_priv.h"

#define MAX_FD_DIGITS 3

static void *grown(void *v, size_t n, size_t size)
{
	/* Doubled at each power of two. */
	return (n & (n - 1)) != 0 ? v : reallocarray(v, n == 0 ? 1 : n * 2, size);
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
		free(c->redirects[i].body);
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
	static const char *const OPS[] = { "&>>", "&>", "<<<", "<<-", "<<", "<&",
		                           "<>",  "<",  ">>",  ">&",  ">|", ">" };
	size_t digits = 0;

	while (isdigit(shell_look(p, digits)) != 0) {
		digits++;
	}
	if (digits > MAX_FD_DIGITS) {
		p->line->broken = p->line->broken || shell_one_of(shell_look(p, digits), "<>");
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(OPS); i++) {
		size_t n = strlen(OPS[i]);
		if (n <= p->len - p->at - digits && memcmp(p->s + p->at + digits, OPS[i], n) == 0 &&
		    !(digits > 0 && *OPS[i] == '&')) {
			return digits + n;
		}
	}
	return 0;
}

static void skip_comment(struct parse *p)
{
	while (shell_look(p, 0) >= 0 && shell_look(p, 0) != '\n') {
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
	c->n_words += shell_read_word(p, stop, &c->words[c->n_words]);
}

/* Can the line from here on have its end within quotes or a substitution? */
static bool ends_elsewhere(const char *s, size_t len)
{
	size_t single = 0, twice = 0;

	for (size_t i = 0; i < len; i++) {
		single += s[i] == '\'';
		twice += s[i] == '"';
		if (shell_one_of((unsigned char)s[i], "\\`()")) {
			return true;
		}
	}
	return single % 2 != 0 || twice % 2 != 0;
}

/* The length of the body at `from`, without the line that ends it; *ret_next is behind
 * that one. False: nothing ends it. */
static bool find_body(const struct parse *p, size_t from, const char *end, bool tabs,
                      size_t *ret_len, size_t *ret_next)
{
	for (size_t at = from; at < p->len;) {
		const char *nl = memchr(p->s + at, '\n', p->len - at);
		size_t next = nl != NULL ? (size_t)(nl - p->s) + 1 : p->len;
		size_t line = at, stop = nl != NULL ? next - 1 : next;
		while (tabs && line < stop && p->s[line] == '\t') {
			line++;
		}
		if (stop - line == strlen(end) && memcmp(p->s + line, end, stop - line) == 0) {
			*ret_len = at - from;
			*ret_next = next;
			return true;
		}
		at = next;
	}
	return false;
}

/* Are there commands in what the shell replaces in it? */
static bool has_commands(const char *body, size_t len)
{
	return memchr(body, '`', len) != NULL || memmem(body, len, "$(", 2) != NULL;
}

/* A here document stands behind the line that asks for it, and behind those that the
 * line asked for before. One with commands in it is left there, to be read as such. */
static void read_body(struct parse *p, struct shell_redirect *r)
{
	const char *nl = p->at < p->len ? memchr(p->s + p->at, '\n', p->len - p->at) : NULL;
	size_t line_end = nl != NULL ? (size_t)(nl - p->s) : 0, len = 0, next = 0;
	bool more = p->waiting && p->line_end == line_end;
	size_t from = more ? p->bodies_end : line_end + 1;

	if (nl == NULL || !r->target.plain || (p->waiting && !more) ||
	    ends_elsewhere(p->s + p->at, line_end - p->at) ||
	    !find_body(p, from, r->target.text, strstr(r->op, "<<-") != NULL, &len, &next) ||
	    (r->target.bare && has_commands(p->s + from, len))) {
		p->line->broken = true;
		return;
	}
	p->line_end = line_end;
	p->bodies_end = next;
	p->waiting = true;
	r->body = strndup(p->s + from, len);
	p->failed = p->failed || r->body == NULL;
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
	while (shell_one_of(shell_look(p, 0), " \t")) {
		p->at++;
	}
	if (shell_ends_word(p, stop)) {
		p->line->broken = true; /* nothing there to redirect to */
		return;
	}
	if (shell_read_word(p, stop, &r.target)) {
		if (strstr(r.op, "<<") != NULL && strstr(r.op, "<<<") == NULL) {
			read_body(p, &r);
		}
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
	shell_read_within(p, &m, ')');
	c->words[c->n_words] = (struct shell_word){ buf_steal(&m.text), buf_steal(&m.pattern),
		                                    false, false, true };
	c->n_words++;
	p->failed = p->failed || c->words[c->n_words - 1].text == NULL ||
	            c->words[c->n_words - 1].pattern == NULL;
}

static bool is_compound(const struct shell_command *c)
{
	static const char *const KEYWORDS[] = { "if",   "then",   "elif",  "else",   "fi",
		                                "for",  "while",  "until", "do",     "done",
		                                "case", "esac",   "in",    "{",      "}",
		                                "[[",   "select", "!",     "coproc", "function" };

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

	while (!p->failed && shell_look(p, 0) >= 0 && !(stop == '`' && shell_look(p, 0) == '`')) {
		size_t redirect = redirect_length(p);
		if (shell_one_of(shell_look(p, 0), " \t")) {
			p->at++;
		} else if (shell_look(p, 0) == '\\' && shell_look(p, 1) == '\n') {
			p->at += 2;
		} else if (shell_look(p, 0) == '#') {
			skip_comment(p);
		} else if (shell_one_of(shell_look(p, 0), "<>") && shell_look(p, 1) == '(') {
			substitute_process(p, &c);
		} else if (redirect > 0) {
			add_redirect(p, &c, redirect, stop);
		} else if (shell_ends_word(p, stop)) {
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
	int c = shell_look(p, 0), next = shell_look(p, 1);

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
	shell_read_within(p, &m, ')');
	making_done(&m);
}

/* One blank, or the end of a line with the here documents behind it. */
static void skip_blank(struct parse *p)
{
	if (p->waiting && p->at == p->line_end) {
		p->at = p->bodies_end;
		p->waiting = false;
	} else {
		p->at++;
	}
}

void shell_read_list(struct parse *p, char stop, enum shell_join join)
{
	while (!p->failed && shell_look(p, 0) >= 0) {
		int c = shell_look(p, 0);
		if (stop != '\0' && c == stop) {
			return;
		}
		if (c == '#') {
			skip_comment(p);
		} else if (shell_one_of(c, " \t\n")) {
			/* A new line means nothing after an operator, and after a command
			 * the next one is joined so already. */
			skip_blank(p);
		} else if (shell_one_of(c, ";&|") && redirect_length(p) == 0) {
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
	shell_read_list(&p, '\0', SHELL_FIRST);
	line.broken = line.broken || p.waiting; /* that end of line was within something */
	if (p.failed) {
		shell_done(&line);
		return -1;
	}
	*ret = line;
	return 0;
}
