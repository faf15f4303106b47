/* learn_talk.h - the messages and questions of `learn`.
 *
 * Messages are printed when the skill has ended, and the skill's output after them. Each line of
 * the output comes after a bar and is made visible, so that it cannot look like our question. Keys
 * that were pressed while the skill ran answer no question. */
#ifndef CLI_LEARN_TALK_H
#define CLI_LEARN_TALK_H

#include "learn/learn.h"

struct learn_talk {
	bool all;     /* show the output of every round, not only of the last */
	char *output; /* output of the last round; owned */
	size_t output_len;
	bool output_cut;
	bool canary; /* some round printed the content of a decoy */
};

void learn_told(void *talk, const struct learn_round *r);
enum learn_word learn_asked(void *talk, const struct need *n, bool can_be_real);
/* Prints what was learned, and what was left out. */
void learn_summary(const struct learn_talk *t, const struct learned *l);
void learn_talk_done(struct learn_talk *t);

#endif
