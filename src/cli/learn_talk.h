/* learn_talk.h - what a person hears of a skill that is being learned, and is asked.
 *
 * The skill has ended when anything is said: its output is shown afterwards, each line
 * behind a bar and made visible, so that none of it looks like a question of ours; and
 * what was typed while it ran answers none. */
#ifndef CLI_LEARN_TALK_H
#define CLI_LEARN_TALK_H

#include "learn/learn.h"

struct learn_talk {
	bool all;     /* the output of every round, not of the last alone */
	char *output; /* of the last round; owned */
	size_t output_len;
	bool output_cut;
	bool canary; /* it held a decoy's content, in some round */
};

void learn_told(void *talk, const struct learn_round *r);
enum learn_word learn_asked(void *talk, const struct need *n, bool can_be_real);
/* What was learned, and what was left out. */
void learn_summary(const struct learn_talk *t, const struct learned *l);
void learn_talk_done(struct learn_talk *t);

#endif
