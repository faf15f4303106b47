/* hook_line.h - reads a line of shell as simple commands.
 *
 * A simple command is words with plain quotes, `NAME=value` before them, and redirections to
 * files. Simple commands are joined by ";", "&&", "||", "|" and new lines. Anything else (a
 * substitution, a subshell, a here document, "&") makes the line `odd`: its commands are then
 * what could be made out. No shell is run, and no file is looked at. */
#ifndef CLI_HOOK_LINE_H
#define CLI_HOOK_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct hook_word {
	char *text;   /* without quotes */
	bool plain;   /* text is exactly what the program gets; else it is a pattern for glob(3) */
	bool bare;    /* nothing was quoted: it can be a keyword or an assignment */
	bool unknown; /* a "*" in it is a variable, and may stand for slashes */
	char op[4];   /* of a redirection: "2>" */
};

struct hook_command {
	/* To the one before it: '\0', ';', '&' for "&&", 'o' for "||", '|', '(' within it, ')' in
	 * its middle, where the first word is not a program. */
	char join;
	struct hook_word *words;
	size_t n_words;
	struct hook_word *redirects;
	size_t n_redirects;
};

struct hook_line {
	struct hook_command *commands;
	size_t n_commands;
	size_t n_words;
	bool odd; /* not only simple commands */
};

struct hook_name {
	const char *name;
	const char *value; /* NULL: not known */
	bool about;        /* good enough to judge by: the word is not plain */
};

/* Appends the commands of `text` to `line`. `nested`: it is a quoted text, in which an escape is
 * mostly a new line or a blank, and a "*" may be unknown. `names` ends with a NULL name; "HOME" is
 * also "~". -1: out of memory, or past a cap of limits.h; `line` must still be freed. */
int hook_line_read(struct hook_line *line, const char *text, size_t len,
                   const struct hook_name names[], bool nested);
void hook_line_done(struct hook_line *line);

/* Is it NAME=value or NAME+=value? */
bool hook_line_assigns(const struct hook_word *w);

#endif
