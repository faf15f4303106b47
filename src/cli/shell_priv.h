/* shell_priv.h - the two halves of the reader: words (shell_words.c), and the lists
 * of commands that they stand in (shell_line.c). */
#ifndef CLI_SHELL_PRIV_H
#define CLI_SHELL_PRIV_H

#include "cli/shell_words.h"

struct parse {
	const char *s;
	size_t len;
	size_t at;
	const struct shell_name *names;
	struct shell_line *line;
	unsigned depth;
	size_t n_words;
	size_t line_end;   /* of the line with here documents that are read already; 0: none */
	size_t bodies_end; /* where the text goes on behind it */
	bool waiting;      /* for that end of line */
	bool failed;
};

/* One word while it is read. */
struct making {
	struct buf text;
	struct buf pattern;
	bool plain;
	bool bare;
	bool unknown;
	bool begun; /* also by an empty pair of quotes */
};

void making_done(struct making *m);

/* The character `ahead` of where we stand; -1 past the end. */
int shell_look(const struct parse *p, size_t ahead);
bool shell_one_of(int c, const char *set);

/* Commands up to `stop`, which is left where it stands; 0: to the end. */
void shell_read_list(struct parse *p, char stop, enum shell_join join);
/* A list inside a word, up to `stop`; the word holds what it prints. */
void shell_read_within(struct parse *p, struct making *m, char stop);
/* The word that begins here. False: out of memory. */
bool shell_read_word(struct parse *p, char stop, struct shell_word *ret);
bool shell_ends_word(const struct parse *p, char stop);

#endif
