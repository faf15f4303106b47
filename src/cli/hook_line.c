/* hook_line.c - see hook_line.h. */
#include "cli/hook_line.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"

struct hook_line_reader {
	const char *s;
	size_t len, at;
	const struct hook_name *names;
	struct hook_line *line;
	struct hook_command command; /* the one that is being read, and its last word: */
	struct hook_word word;
	struct buf text;
	bool begun;      /* the word, also by an empty pair of quotes */
	unsigned depth;  /* of brackets */
	uint64_t quoted; /* a bit for each depth: that bracket began in double quotes */
	bool tick;       /* between backquotes */
	bool nested, failed;
};

static int peek_char(const struct hook_line_reader *r, size_t ahead)
{
	return ahead < r->len - r->at ? (unsigned char)r->s[r->at + ahead] : -1;
}

static bool is_one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

static void set_odd(struct hook_line_reader *r, bool odd)
{
	r->line->odd = r->line->odd || odd;
}

/* The array with room for one more; its size doubles at each power of two. */
static void *grow_array(struct hook_line_reader *r, void *v, size_t n, size_t size)
{
	void *grown = (n & (n - 1)) != 0 ? v : reallocarray(v, n == 0 ? 1 : n * 2, size);

	r->failed = r->failed || grown == NULL;
	return grown != NULL ? grown : v;
}

static void put_char(struct hook_line_reader *r, int c)
{
	buf_addc(&r->text, (char)c);
	r->begun = true;
}

static void put_unknown(struct hook_line_reader *r)
{
	put_char(r, '*');
	r->word.plain = false;
	r->word.unknown = true;
}

static void start_word(struct hook_line_reader *r)
{
	buf_reset(&r->text);
	buf_adds(&r->text, "");
	r->word = (struct hook_word){ .plain = true, .bare = true };
	r->begun = false;
	r->failed = r->failed || r->text.failed;
}

static void end_word(struct hook_line_reader *r)
{
	struct hook_command *c = &r->command;
	bool redirects = r->word.op[0] != '\0';
	struct hook_word **v = redirects ? &c->redirects : &c->words;
	size_t *n = redirects ? &c->n_redirects : &c->n_words;

	if (!r->begun) {
		return;
	}
	*v = grow_array(r, *v, *n, sizeof(**v));
	r->word.text = r->failed || r->text.failed ? NULL : strdup(r->text.data);
	if (r->word.text == NULL || r->line->n_words++ == MAX_SHELL_WORDS) {
		free(r->word.text);
		r->failed = true;
		return;
	}
	if (strcmp(r->word.text, "[") == 0 || strcmp(r->word.text, "[[") == 0) {
		r->word.plain = true; /* the command; it begins no pattern */
	}
	set_odd(r, strchr(r->word.op, '&') != NULL && strcmp(r->word.text, "1") != 0 &&
	                   strcmp(r->word.text, "2") != 0);
	(*v)[(*n)++] = r->word;
	start_word(r);
}

/* `join` is how the next command follows. A new line joins nothing after an operator. */
static void end_command(struct hook_line_reader *r, char join)
{
	struct hook_line *line = r->line;

	end_word(r);
	set_odd(r, r->word.op[0] != '\0'); /* nothing to redirect to */
	start_word(r);
	if (r->command.n_words + r->command.n_redirects == 0) {
		r->command.join = join == '\n' ? r->command.join : join;
		return;
	}
	line->commands = grow_array(r, line->commands, line->n_commands, sizeof(*line->commands));
	r->failed = r->failed || line->n_commands == MAX_SHELL_COMMANDS;
	if (!r->failed) {
		line->commands[line->n_commands++] = r->command;
		r->command = (struct hook_command){ .join = join == '\n' ? ';' : join };
	}
}

static void read_quoted(struct hook_line_reader *r, int quote);

static uint64_t find_bit(const struct hook_line_reader *r)
{
	return r->depth < 64 ? UINT64_C(1) << r->depth : 0;
}

/* What closes a substitution ends the command in it; the word around it goes on, in double quotes
 * if it began there. */
static void read_bracket(struct hook_line_reader *r, int c, bool quoted)
{
	bool opens = c == '(' || (c == '`' && !r->tick);
	bool closes = !opens && r->depth > 0;

	set_odd(r, true);
	if (c == '`' && opens) {
		put_unknown(r);
	}
	r->tick = c == '`' ? opens : r->tick;
	end_command(r, opens ? '(' : closes ? ')' : ';');
	if (opens) {
		r->depth++;
		r->quoted = quoted ? r->quoted | find_bit(r) : r->quoted & ~find_bit(r);
	} else if (closes) {
		bool resumes = (r->quoted & find_bit(r)) != 0;
		r->depth--;
		if (resumes) {
			put_unknown(r);
			read_quoted(r, '"');
			return;
		}
	}
	r->at++;
	if (closes && peek_char(r, 0) > 0 && !is_one_of(peek_char(r, 0), " \t\n;&|<>()`")) {
		put_unknown(r);
	}
}

static void read_operator(struct hook_line_reader *r, int c)
{
	bool twice = is_one_of(c, "&|") && peek_char(r, 1) == c;

	set_odd(r, !is_one_of(c, "&|;\n") || (c == '&' && !twice) ||
	                   (c == '|' && peek_char(r, 1) == '&'));
	if (twice) {
		end_command(r, c == '&' ? '&' : 'o');
	} else {
		end_command(r, (char)(is_one_of(c, "|\n") ? c : ';'));
	}
	r->at += twice ? 2 : 1;
}

static size_t name_length(const struct hook_line_reader *r, size_t from)
{
	size_t n = 0;

	while (peek_char(r, from + n) == '_' || isalnum(peek_char(r, from + n)) != 0) {
		n++;
	}
	return n;
}

/* Without quotes around it a value is split, and may be a pattern. */
static void put_variable(struct hook_line_reader *r, const char *name, size_t len, bool quoted)
{
	const char *value = NULL;

	for (const struct hook_name *n = r->names; n->name != NULL; n++) {
		if (strlen(n->name) == len && memcmp(n->name, name, len) == 0) {
			value = n->value;
			r->word.plain = r->word.plain && !n->about;
		}
	}
	if (value == NULL || (!quoted && value[strcspn(value, " \t\n*?[\\")] != '\0')) {
		put_unknown(r);
		return;
	}
	buf_adds(&r->text, value);
	r->begun = true;
}

static void read_dollar(struct hook_line_reader *r, bool quoted)
{
	int c = peek_char(r, 1);
	size_t braced = c == '{', n = name_length(r, 1 + braced);

	if (n > 0 && isdigit(peek_char(r, 1 + braced)) == 0 &&
	    (braced == 0 || peek_char(r, 2 + n) == '}')) {
		put_variable(r, r->s + r->at + 1 + braced, n, quoted);
		r->at += 1 + n + 2 * braced;
	} else if (braced > 0 || c == '(' || (is_one_of(c, "'\"") && !quoted)) {
		set_odd(r, true);
		put_unknown(r);
		r->at += 1 + braced;
	} else if (is_one_of(c, "@*#?-$!0123456789[")) {
		put_unknown(r);
		r->at += 2;
	} else {
		put_char(r, '$');
		r->at++;
	}
}

/* Begins at the quote, or at what closes a substitution in it. */
static void read_quoted(struct hook_line_reader *r, int quote)
{
	r->begun = true;
	r->word.bare = false;
	for (r->at++; peek_char(r, 0) >= 0 && peek_char(r, 0) != quote;) {
		int c = peek_char(r, 0), next = peek_char(r, 1);
		bool twice = quote == '"';
		if (twice && (c == '`' || (c == '$' && next == '('))) {
			if (c == '$') {
				put_unknown(r);
				r->at++;
			}
			read_bracket(r, peek_char(r, 0), true);
			return;
		}
		if (twice && c == '$') {
			read_dollar(r, true);
			continue;
		}
		/* In double quotes "!" is the history of an interactive shell, and a backslash at
		 * the end of a line joins the next line to it. */
		r->word.plain = r->word.plain && !(twice && c == '!');
		set_odd(r, c == '\0' || (twice && c == '\\' && next == '\n'));
		r->at += twice && c == '\\' && is_one_of(next, "$`\"\\") ? 1 : 0;
		put_char(r, peek_char(r, 0));
		r->at++;
	}
	set_odd(r, peek_char(r, 0) < 0);
	r->at += peek_char(r, 0) >= 0;
}

static void read_escape(struct hook_line_reader *r)
{
	int c = peek_char(r, 1);

	if (r->nested && is_one_of(c, "nr")) { /* printf 'cd x\n./y' */
		end_command(r, '\n');
	} else if (r->nested && is_one_of(c, "tvf_")) {
		end_word(r);
	} else if (c >= 0 && c != '\n') {
		r->word.bare = false;
		put_char(r, c);
	}
	set_odd(r, c < 0);
	r->at += c < 0 ? 1 : 2;
}

/* "2>" is read when its ">" is met: the digit is then the word so far. */
static void read_redirect(struct hook_line_reader *r, int c)
{
	bool digits = r->begun && r->word.bare &&
	              r->text.data[strspn(r->text.data, "0123456789")] == '\0';
	char op[sizeof(r->word.op)] = { (char)c };
	size_t n = 1;

	if (digits) {
		op[0] = r->text.data[0];
		op[n++] = (char)c;
		set_odd(r, r->text.len > 1 || !is_one_of(op[0], "12") || c != '>');
		set_odd(r, r->word.op[0] != '\0'); /* "> 2>" */
		start_word(r);
	} else {
		end_word(r);
		set_odd(r, r->word.op[0] != '\0'); /* "> >" */
	}
	r->at++;
	if (c == '>' && is_one_of(peek_char(r, 0), ">&")) {
		op[n] = (char)peek_char(r, 0);
		r->at++;
	}
	set_odd(r, is_one_of(peek_char(r, 0), "<>&|("));
	memcpy(r->word.op, op, sizeof(op));
}

/* "~" is the home; what "~+" and "~you" are, only the shell knows. "{a,b}" becomes a "*". */
static void read_other(struct hook_line_reader *r, int c)
{
	const char *ends = c == '~' ? "/ \t\n\"'$`\\;&|()<>" : "/} \t\n\"'$`\\;&|()<>";
	size_t n = 1;

	while (is_one_of(c, "~{") && peek_char(r, n) > 0 && !is_one_of(peek_char(r, n), ends)) {
		n++;
	}
	if (c == '~' && !r->begun && n == 1) {
		put_variable(r, "HOME", 4, true);
	} else if (c == '~' && !r->begun) {
		put_unknown(r);
		r->at += n - 1;
	} else if (c == '{' && n > 1 && peek_char(r, n) == '}') {
		put_unknown(r);
		r->at += n;
	} else if (c == '*' && r->nested) {
		put_unknown(r);
	} else {
		/* What a shell would replace, and control characters, which no name has. */
		r->word.plain = r->word.plain && !is_one_of(c, "*?[{") && c >= ' ' && c != 127 &&
		                (c != '=' || r->begun);
		r->word.unknown = r->word.unknown || (c == '{' && peek_char(r, n) == '/');
		put_char(r, c);
	}
	r->at++;
}

static void read_char(struct hook_line_reader *r)
{
	int c = peek_char(r, 0);

	bool option = r->nested && r->begun && r->text.data[0] == '-';

	if (is_one_of(c, " \t") || (option && c == '=')) {
		end_word(r);
		r->at++;
	} else if (is_one_of(c, "'\"")) {
		read_quoted(r, c);
	} else if (c == '\\') {
		read_escape(r);
	} else if (c == '$') {
		read_dollar(r, false);
	} else if (c == '#' && !r->begun) {
		const char *end = memchr(r->s + r->at, '\n', r->len - r->at);
		r->at = end != NULL ? (size_t)(end - r->s) : r->len;
	} else if (is_one_of(c, "<>")) {
		read_redirect(r, c);
	} else if (is_one_of(c, "()`")) {
		read_bracket(r, c, false);
	} else if (is_one_of(c, ";&|\n") || c == '\0') {
		read_operator(r, c);
	} else {
		read_other(r, c);
	}
}

static void free_command(struct hook_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		free(c->words[i].text);
	}
	for (size_t i = 0; i < c->n_redirects; i++) {
		free(c->redirects[i].text);
	}
	free(c->words);
	free(c->redirects);
}

void hook_line_done(struct hook_line *line)
{
	for (size_t i = 0; i < line->n_commands; i++) {
		free_command(&line->commands[i]);
	}
	free(line->commands);
	*line = (struct hook_line){ 0 };
}

int hook_line_read(struct hook_line *line, const char *text, size_t len,
                   const struct hook_name names[], bool nested)
{
	struct hook_line_reader r = {
		.s = text, .len = len, .names = names, .line = line, .nested = nested
	};

	if (len > MAX_SHELL_BYTES) {
		return -1;
	}
	buf_init(&r.text, len + MAX_PATH_BYTES);
	start_word(&r);
	set_odd(&r, memchr(text, '\0', len) != NULL); /* shells do not agree about it */
	while (!r.failed && r.at < len) {
		read_char(&r);
	}
	end_command(&r, '\n');
	free_command(&r.command);
	buf_done(&r.text);
	return r.failed ? -1 : 0;
}

bool hook_line_assigns(const struct hook_word *w)
{
	const char *s = w->text;

	while (*s == '_' || isalnum((unsigned char)*s) != 0) {
		s++;
	}
	return s > w->text && isdigit((unsigned char)w->text[0]) == 0 &&
	       (*s == '=' || *s == '[' || (*s == '+' && s[1] == '='));
}
