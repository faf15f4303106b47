/* hints_priv.h - the state while a text is searched, shared by hints.c and hints_paths.c. */
#ifndef LEARN_HINTS_PRIV_H
#define LEARN_HINTS_PRIV_H

#include "learn/needs.h"

#define MAX_LINE 4096 /* bytes of a line that are read */

enum text_kind { TEXT_CODE, TEXT_SHELL, TEXT_PROSE, TEXT_MARKDOWN, TEXT_SKIPPED };

struct hint_scan {
	const char *file;
	struct needs *out;
	enum text_kind kind;
	bool python;
	bool makes_dirs; /* the text has code that makes directories */
	bool fenced;     /* in Markdown: the line is between ``` and ``` */
	bool docstring;  /* in Python: the line is between """ and """ */
	const char *text;
	size_t len;
	unsigned line;
	unsigned looked; /* how often the whole text was searched */
	bool prose;      /* the current line is not code */
	bool nomem;
};

/* Adds a hint from the current line. */
void hints_add(struct hint_scan *s, struct need *n);
/* Returns the first word (new) of the text in quotes at `p`, or NULL if there is none. Blanks and
 * brackets may come first. *ret_after is the place behind the quotes. */
char *hints_quoted(struct hint_scan *s, const char *p, const char *end, const char **ret_after);
/* Returns the first place that has none of these characters. */
const char *hints_skip(const char *p, const char *end, const char *chars);
bool hints_begin(const char *p, const char *end, const char *with);

/* Adds the paths of the home that the line mentions. */
void hints_find_paths(struct hint_scan *s, const char *line, const char *end);

#endif
