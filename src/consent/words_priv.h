/* words_priv.h - the words themselves (words_say.c, words_worst.c), for words.c. */
#ifndef CONSENT_WORDS_PRIV_H
#define CONSENT_WORDS_PRIV_H

#include "consent/words.h"

#define MAX_SENTENCE (16UL * 1024)

/* Fills all but `asked`, `dangerous` and `never`, which are there. `r` is the refusal, or
 * what was withheld; NULL: it is granted. */
int words_say(const struct ssb_plan *p, const struct refusal *r, struct ability *a);
/* Fills `worst` anew. */
int words_worst(struct abilities *a);

#endif
