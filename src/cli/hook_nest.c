/* hook_nest.c - see hook_nest.h. */
#include "cli/hook_nest.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/hook_programs.h"
#include "policy/path.h"

/* Take a text behind -c, and one on standard input. */
static const char *const SHELLS[] = { "sh",  "bash", "dash", "zsh", "ksh",    "fish",
	                              "ash", "su",   "mksh", "sg",  "script", "runuser" };
/* Their words are the text. */
static const char *const EVALS[] = { "eval", "watch", "trap", "parallel" };

struct nest {
	struct buf text;
	bool unknown; /* part of the text is not known */
};

static void put_text(struct nest *n, const struct shell_word *w)
{
	buf_adds(&n->text, w->text);
	n->unknown = n->unknown || w->unknown;
}

/* What echo and printf print, nearly: "\n" is a new line to them. */
static void put_printed(struct nest *n, const struct shell_command *c)
{
	for (size_t i = 1; i < c->n_words; i++) {
		for (const char *s = c->words[i].text; *s != '\0'; s++) {
			bool line = s[0] == '\\' && s[1] == 'n';
			buf_addc(&n->text, line ? '\n' : *s);
			s += line;
		}
		n->unknown = n->unknown || c->words[i].unknown;
		buf_addc(&n->text, ' ');
	}
	buf_addc(&n->text, '\n');
}

static bool prints(const struct shell_command *c)
{
	static const char *const PRINTERS[] = { "echo", "printf" };

	return c->n_words > 1 &&
	       hook_program_among(path_base(c->words[0].text), PRINTERS, ARRAY_LEN(PRINTERS));
}

/* The shell is word `at`: its text is the first word behind -c that is no option. */
static void put_shell(struct nest *n, const struct shell_command *c, size_t at)
{
	bool given = false;

	for (size_t i = at + 1; i < c->n_words; i++) {
		const char *s = c->words[i].text;
		if (s[0] == '-' && s[1] != '-') {
			given = given || strchr(s, 'c') != NULL;
		} else if (given && s[0] != '-' && s[0] != '+') {
			put_text(n, &c->words[i]);
			break;
		}
	}
	buf_addc(&n->text, '\n');
	for (size_t i = 0; i < c->n_redirects; i++) {
		const struct shell_redirect *r = &c->redirects[i];
		if (r->body != NULL) {
			buf_adds(&n->text, r->body);
		} else if (strstr(r->op, "<<<") != NULL) {
			put_text(n, &r->target);
		}
		buf_addc(&n->text, '\n');
	}
}

/* What env(1) takes apart by itself: "-S TEXT", "-iSTEXT", "--split-string=TEXT", which may be cut
 * to "--s=TEXT". NULL: the word is no such option; "": the text is the next word. */
static const char *split_text(const char *word)
{
	static const char LONG[] = "--split-string";
	const char *s = word[0] == '-' && word[1] != '-' ? strchr(word, 'S') : NULL;

	if (s != NULL) {
		return s + 1;
	}
	size_t len = strcspn(word, "=");
	if (len < strlen("--s") || len > strlen(LONG) || strncmp(word, LONG, len) != 0) {
		return NULL;
	}
	return word[len] == '=' ? word + len + 1 : "";
}

/* env is word `at`. In such a text "\_" and the like are spaces. */
static void put_split(struct nest *n, const struct shell_command *c, size_t at)
{
	const char *text = NULL;

	while (text == NULL && ++at < c->n_words) {
		text = split_text(c->words[at].text);
	}
	for (bool first = true; at < c->n_words; at++, first = false) {
		for (const char *s = first ? text : c->words[at].text; *s != '\0'; s++) {
			bool space = s[0] == '\\' && s[1] != '\0' && strchr("_tnvfr", s[1]) != NULL;
			buf_addc(&n->text, space ? ' ' : *s);
			s += space;
		}
		n->unknown = n->unknown || c->words[at].unknown;
		buf_addc(&n->text, ' ');
	}
	buf_addc(&n->text, '\n');
}

/* All that the command (`before` is the one in front of it; NULL: none) would run. */
static void gather(struct nest *n, const char *self, const struct shell_command *c,
                   const struct shell_command *before)
{
	for (size_t i = 0; i < c->n_words && !hook_program_looks(c, self); i++) {
		const char *name = path_base(c->words[i].text);
		if (hook_program_among(name, SHELLS, ARRAY_LEN(SHELLS))) {
			put_shell(n, c, i);
			if (c->join == SHELL_PIPE && before != NULL && prints(before)) {
				put_printed(n, before);
			}
			return;
		}
		if (strcmp(name, "env") == 0) {
			put_split(n, c, i);
		}
		if (hook_program_among(name, EVALS, ARRAY_LEN(EVALS))) {
			while (++i < c->n_words) {
				put_text(n, &c->words[i]);
				buf_addc(&n->text, ' ');
			}
		}
	}
}

static void mark(struct shell_line *line, bool unknown)
{
	for (size_t i = 0; i < line->n_commands; i++) {
		struct shell_command *c = &line->commands[i];
		c->join = c->join == SHELL_FIRST ? SHELL_WITHIN : c->join;
		for (size_t k = 0; unknown && k < c->n_words; k++) {
			struct shell_word *w = &c->words[k];
			w->unknown = w->unknown || strchr(w->text, '*') != NULL;
			w->plain = w->plain && !w->unknown;
		}
	}
}

static int unfold(struct shell_line *line, const struct shell_name names[], const char *self,
                  unsigned depth);

/* What one command hands on. */
static int read_inner(const struct shell_line *line, size_t at, const struct shell_name names[],
                      const char *self, unsigned depth, struct shell_line *ret)
{
	struct nest n = { 0 };

	buf_init(&n.text, 2 * MAX_SHELL_BYTES);
	gather(&n, self, &line->commands[at], at > 0 ? &line->commands[at - 1] : NULL);
	auto_buf text = n.text;
	if (text.failed || text.len == 0) {
		return text.failed ? -1 : 0;
	}
	if (depth == MAX_SHELL_DEPTH) {
		ret->broken = true;
		return 0;
	}
	if (shell_parse(text.data, text.len, names, ret) != 0 ||
	    unfold(ret, names, self, depth + 1) != 0) {
		return -1;
	}
	mark(ret, n.unknown);
	return 0;
}

/* Each command with its own behind it; the commands move. */
static int weave(struct shell_line *line, const struct shell_line inner[])
{
	size_t n = line->n_commands, at = 0;

	for (size_t i = 0; i < line->n_commands; i++) {
		n += inner[i].n_commands;
	}
	struct shell_command *v = n <= MAX_SHELL_COMMANDS ? calloc(n + 1, sizeof(*v)) : NULL;
	if (v == NULL) {
		return -1;
	}
	for (size_t i = 0; i < line->n_commands; i++) {
		v[at++] = line->commands[i];
		for (size_t k = 0; k < inner[i].n_commands; k++) {
			v[at++] = inner[i].commands[k];
		}
		line->broken = line->broken || inner[i].broken;
		line->beside = line->beside || inner[i].beside;
		free(inner[i].commands);
	}
	free(line->commands);
	line->commands = v;
	line->n_commands = n;
	return 0;
}

static int unfold(struct shell_line *line, const struct shell_name names[], const char *self,
                  unsigned depth)
{
	auto_free struct shell_line *inner = calloc(line->n_commands + 1, sizeof(*inner));
	int rc = inner != NULL ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < line->n_commands; i++) {
		rc = read_inner(line, i, names, self, depth, &inner[i]);
	}
	size_t n = line->n_commands;
	if (rc == 0 && weave(line, inner) == 0) {
		return 0;
	}
	for (size_t i = 0; inner != NULL && i < n; i++) {
		shell_done(&inner[i]);
	}
	return -1;
}

int hook_unfold(struct shell_line *line, const struct shell_name names[], const char *self)
{
	return unfold(line, names, self, 0);
}
