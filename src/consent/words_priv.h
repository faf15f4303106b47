/* words_priv.h - the part of words_say.c that words.c uses. */
#ifndef CONSENT_WORDS_PRIV_H
#define CONSENT_WORDS_PRIV_H

#include "consent/words.h"

#define MAX_SENTENCE (16UL * 1024)

/* Fills everything except `asked`, `dangerous` and `never`, which must be set. `r` is the refusal
 * or the withheld item; NULL if the item is granted. Returns -1 if out of memory. */
int words_say(const struct ssb_plan *p, const struct refusal *r, struct ability *a);

#endif
