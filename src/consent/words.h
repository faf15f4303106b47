/* words.h - a plan in words that a person understands. Pure.
 *
 * What a skill says of itself (its name, paths, hosts) is made visible, bounded, and in
 * quotes unless it is plain: no byte of it moves the cursor, begins a line, or looks like a
 * word of ours. Lines are folded here, so that no terminal has to: what goes on begins with
 * a bar. */
#ifndef CONSENT_WORDS_H
#define CONSENT_WORDS_H

#include "base/buf.h"
#include "policy/plan.h"

enum ability_kind {
	ABILITY_NETWORK,
	ABILITY_READ,
	ABILITY_WRITE,
	ABILITY_ENV,
	ABILITY_PROGRAMS, /* the directory of an interpreter */
	ABILITY_LIMIT,    /* above the usual; value: "memory_mb 4096" */
	ABILITY_OTHER,
};

/* In this order they are shown, whatever the order of the manifest: its author does not
 * decide what is seen first. */
enum ability_rank {
	RANK_DANGEROUS,
	RANK_SECRET, /* variables that open something */
	RANK_OTHER,
	RANK_ENV,
	RANK_NETWORK,
	RANK_WRITE,
	RANK_PERSONAL, /* files in the owner's home */
	RANK_PROGRAMS,
	RANK_LIMIT,
	RANK_READ, /* this and the next may be counted in place of being shown */
	RANK_SYSTEM,
	RANK_COUNT,
};

/* One thing that it could do, of those that can be taken out. */
struct ability {
	enum ability_kind kind;
	enum ability_rank rank;
	char *asked;       /* its item of plan->requested, or of a refusal: "read ~/notes" */
	const char *value; /* the part of it that is not ours: "~/notes" */
	char *text;        /* "read every file in ~/notes" */
	char *thing;       /* what it is about, in words: "your SSH keys (~/.ssh)" */
	bool dangerous;    /* refused, or withheld: it needs the owner's word */
	bool never;        /* dangerous, and no word of the owner's allows it */
	bool secret;       /* keys, passwords and the like */
	char *why;         /* dangerous or secret: what could come of it; else NULL */
};

struct abilities {
	struct ability *v; /* by rank */
	size_t n;
	char *worst; /* what the worst combination of them comes to; NULL: nothing */
};

/* What the owner took out already is none of it. -1 without memory. */
int abilities_of(const struct ssb_plan *p, struct abilities *ret);
void abilities_done(struct abilities *a);
/* Takes one out; `worst` is that of the rest. -1 without memory. */
int abilities_drop(struct abilities *a, size_t i);
size_t abilities_dangerous(const struct abilities *a); /* how many need the owner's word */

#define WORDS_COLUMNS 78 /* where the width of a terminal is not known */

struct words_look {
	bool color;
	bool numbered;  /* "  1. ", to choose from; else "  - " */
	size_t columns; /* folded at so many; 0: WORDS_COLUMNS */
	size_t most;    /* lines: what is left to read outside the home is counted; 0: all */
};

/* All of it as lines, each "  - text"; the dangerous first, marked "  ! ". Returns how many
 * were only counted. */
size_t abilities_lines(struct buf *out, const struct abilities *a, const struct words_look *look);

/* A text from others: made visible, at most MAX_WORD_BYTES of it (head and tail), in quotes
 * unless it is made of letters, digits and what stands in plain paths. */
void words_quote(struct buf *out, const char *text);
/* The same without quotes, for a sentence of ours with such a text in it. */
void words_plain(struct buf *out, const char *text);
/* Appends `text` in lines of at most `columns`: the first begins with `first` (and is
 * ours), each other with spaces and a bar. */
void words_fold(struct buf *out, const char *first, const char *text, size_t columns);

#endif
