/* ask.h - asks a person at the terminal.
 *
 * A question needs a terminal on standard input and standard error, and this process in its
 * foreground. What was typed before the question is discarded: it must not count as the
 * answer. An answer is a whole line. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include <stdbool.h>
#include <stddef.h>

enum ask_answer {
	ASKED_NOBODY, /* there is no terminal */
	ASKED_NO,
	ASKED_YES, /* exactly "yes" was typed; every other answer is ASKED_NO */
};

enum ask_answer ask_yes(const char *question);

bool ask_terminal(void); /* returns whether a person can be asked */

/* Shows `prompt` unchanged (so it must not contain hostile text), and stores one line without its
 * newline in `ret`. Returns false if there is no terminal, the input ended, or the line is longer
 * than `size` - 1. */
bool ask_line(const char *prompt, char *ret, size_t size);

#endif
