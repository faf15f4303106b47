/* words_priv.h - what words.c takes from words_say.c. */
#ifndef CONSENT_WORDS_PRIV_H
#define CONSENT_WORDS_PRIV_H

#include "consent/words.h"

#define MAX_SENTENCE (16UL * 1024)

/* Fills everything except `asked`, `dangerous` and `never`, which must be set. `r` is the refusal,
 * or what was withheld; NULL: it is granted. -1: out of memory. */
int words_say(const struct ssb_plan *p, const struct refusal *r, struct ability *a);

#endif
