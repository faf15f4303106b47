/* hook_line.h - reads a line of shell into one flat text, without a shell and without files.
 *
 * The text has words between single blanks. The words ";", "&&", "||" and "|" join commands, and
 * "$" in a word is an unknown value. There are four readings:
 *
 *   EXACT   The line must be a list of simple commands: words with quotes and backslashes, and
 *           redirections to files (the word "2>" and the file) or "2>&1". Literal characters that
 *           mean something to a shell are masked: "*" in a word is a pattern.
 *   JOINED  Any line. Quotes and backslashes vanish. Substitutions, subshells and here documents
 *           are commands like all others; ")" ends a substitution, "<" is any redirection.
 *   SPLIT   The same, but quotes and backslashes separate words.
 *   BARE    Like JOINED, but redirections are not between the words: their files follow at the end,
 *           as commands. */
#ifndef CLI_HOOK_LINE_H
#define CLI_HOOK_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum hook_reading { HOOK_EXACT, HOOK_JOINED, HOOK_SPLIT, HOOK_BARE };

/* A variable of which the value is known. "HOME" is also "~". */
struct hook_name {
	const char *name;
	const char *value; /* NULL: not known */
};

/* Appends the text. `names` ends with a NULL name. Returns false if the reading is HOOK_EXACT and
 * the line is not simple. The caller must check out->failed. */
bool hook_line_read(struct buf *out, const char *line, size_t len, const struct hook_name names[],
                    enum hook_reading how);

/* Removes the mask of literal characters. */
void hook_line_unmask(char *word);

#endif
