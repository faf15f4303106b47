/* learn_talk.h - the messages and questions of `learn`.
 *
 * Messages come when the skill has ended. Its output is shown after that, each line behind a bar
 * and made visible, so that it cannot look like our question. What was typed while the skill ran
 * answers no question. */
#ifndef CLI_LEARN_TALK_H
#define CLI_LEARN_TALK_H

#include "learn/learn.h"

struct learn_talk {
	bool all;     /* show the output of every round, not only of the last */
	char *output; /* of the last round; owned */
	size_t output_len;
	bool output_cut;
	bool canary; /* the output of some round had the content of a decoy */
};

void learn_told(void *talk, const struct learn_round *r);
enum learn_word learn_asked(void *talk, const struct need *n, bool can_be_real);
/* What was learned, and what was left out. */
void learn_summary(const struct learn_talk *t, const struct learned *l);
void learn_talk_done(struct learn_talk *t);

#endif
