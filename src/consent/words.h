/* words.h - a plan in words that a person understands. Pure.
 *
 * What a skill says of itself (its name, paths, hosts) is quoted and made visible: no
 * byte of it moves the cursor, begins a line, or looks like a word of ours. */
#ifndef CONSENT_WORDS_H
#define CONSENT_WORDS_H

#include "base/buf.h"
#include "policy/plan.h"

/* One thing that it could do, of those that can be taken out. */
struct ability {
	char *asked;    /* its item of plan->requested, or of a refusal: "read ~/notes" */
	char *text;     /* "read the files in ~/notes" */
	bool dangerous; /* refused, or withheld: it needs the owner's word */
	char *why;      /* dangerous: what could come of it */
};

struct abilities {
	struct ability *v;
	size_t n;
	char *worst; /* what the worst combination of them comes to; NULL: nothing */
};

int abilities_of(const struct ssb_plan *p, struct abilities *ret);
void abilities_done(struct abilities *a);

/* All of it as lines, each "  - text"; the dangerous first, marked. */
void abilities_text(struct buf *out, const struct abilities *a, bool color);

#endif
