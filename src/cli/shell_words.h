/* shell_words.h - what a line of shell would start, as far as its text tells.
 *
 * No shell is run and no file looked at. Simple commands are found wherever they
 * stand: in a list, a pipeline, a subshell, a substitution. What depends on
 * anything but the text (a variable, a substitution) becomes a "*" in its word,
 * and the word is not plain. Where the structure itself is beyond this reader
 * (compound commands, what has no end) the line is `broken`: its
 * commands are then what could be made out, and must not be taken for all. */
#ifndef CLI_SHELL_WORDS_H
#define CLI_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum shell_join {
	SHELL_FIRST,
	SHELL_AND,
	SHELL_OR,
	SHELL_THEN, /* ; or a new line */
	SHELL_PIPE,
	SHELL_BESIDE, /* & */
	SHELL_WITHIN, /* a subshell or substitution begins */
};

struct shell_word {
	char *text;    /* without its quotes */
	char *pattern; /* the same for glob(3): what was quoted is escaped */
	bool plain;    /* text is exactly what the program gets */
	bool bare;     /* nothing was quoted: it can be a keyword or an assignment */
	bool unknown;  /* a "*" in it stands for anything, slashes too */
};

struct shell_redirect {
	char op[8]; /* "2>", ">>", "2>&" */
	struct shell_word target;
	char *body; /* of a here document; else NULL */
};

struct shell_command {
	enum shell_join join; /* to the one before it */
	struct shell_word *words;
	size_t n_words;
	struct shell_redirect *redirects;
	size_t n_redirects;
};

struct shell_line {
	struct shell_command *commands;
	size_t n_commands;
	bool broken;
	bool beside; /* something goes to the background */
};

/* A variable of which the value is known. */
struct shell_name {
	const char *name;
	const char *value; /* NULL: not known after all */
	bool about;        /* good enough to judge by: the word is not plain */
};

/* Fills `ret`, also where the line is broken. -1: out of memory, or past a cap of
 * limits.h; `ret` is then empty. `names` ends with a NULL name; "HOME" is "~" too. */
int shell_parse(const char *text, size_t len, const struct shell_name names[],
                struct shell_line *ret);
void shell_done(struct shell_line *line);

/* NAME=... or NAME+=... before a command. */
bool shell_assigns(const struct shell_word *w);

#endif
