/* ask.h - the word of a person at the terminal.
 *
 * Standard input and standard error are a terminal, and we are in its foreground: nobody
 * else is asked. What was typed before the question stood there is thrown away, so that
 * nothing that was pasted or typed ahead answers it. An answer is a whole line. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include <stdbool.h>
#include <stddef.h>

enum asked {
	ASKED_NOBODY, /* there is no terminal */
	ASKED_NO,
	ASKED_YES, /* "yes" was typed, in so many letters; anything else is no */
};

enum asked ask_yes(const char *question);

bool ask_terminal(void);  /* is there somebody to ask? */
size_t ask_columns(void); /* of that terminal; 0: not known */

/* Shows `prompt` (ours) as it is, and reads a line, which is stored without its end. False:
 * nobody is there, the input ended, or the line is longer than `size` - 1. */
bool ask_line(const char *prompt, char *ret, size_t size);

#endif
