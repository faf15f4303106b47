/* ask.h - the word of a person at the terminal. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

enum asked {
	ASKED_NOBODY, /* there is no terminal */
	ASKED_NO,
	ASKED_YES, /* "yes" was typed, in so many letters; anything else is no */
};

enum asked ask_yes(const char *question);

#endif
