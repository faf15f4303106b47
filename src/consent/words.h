/* words.h - a plan in words that a person understands. Pure.
 *
 * Texts from the skill (its name, paths, hosts) are made visible, limited in length, and
 * quoted unless they are plain: no byte of them can move the cursor, begin a line, or look
 * like words of this program. Lines are folded here, before a terminal would do it: each
 * continued line begins with a bar. */
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
	ABILITY_LIMIT,    /* a limit above the default; value: "memory_mb 4096" */
	ABILITY_OTHER,
};

/* The order in which abilities are shown. It does not depend on the manifest, so that the author of
 * a skill cannot decide what the owner sees first. */
enum ability_rank {
	RANK_DANGEROUS,
	RANK_SECRET, /* variables with a key or a password */
	RANK_OTHER,
	RANK_ENV,
	RANK_NETWORK,
	RANK_WRITE,
	RANK_PERSONAL, /* files in the owner's home */
	RANK_PROGRAMS,
	RANK_LIMIT,
	RANK_READ, /* abilities of this rank and of RANK_SYSTEM may only be counted */
	RANK_SYSTEM,
	RANK_COUNT,
};

/* One thing that the skill could do, and that the owner can decline. */
struct ability {
	enum ability_kind kind;
	enum ability_rank rank;
	char *asked;       /* the item of plan->requested or of a refusal: "read ~/notes" */
	const char *value; /* the part of `asked` that comes from the skill: "~/notes" */
	char *text;        /* "read every file in ~/notes" */
	char *thing;       /* what could happen to: "your SSH keys (~/.ssh)" */
	bool fresh;        /* the owner adds it now; shown as "(new)" */
	bool dangerous;    /* refused or withheld unless the owner agrees */
	bool never;        /* dangerous, and not even the owner can allow it */
	bool secret;       /* keys, passwords and the like */
	char *why;         /* if dangerous or secret: what could happen; else NULL */
};

struct abilities {
	struct ability *v; /* sorted by rank */
	size_t n;
	char *worst; /* what the worst combination of abilities allows; NULL: nothing */
};

/* Lists all abilities of a plan except those that the owner declined already. The caller must pass
 * *ret to abilities_done(). Returns -1 if out of memory. */
int abilities_of(const struct ssb_plan *p, struct abilities *ret);
void abilities_done(struct abilities *a);
/* Removes one ability, and sets `worst` for the rest. Returns -1 if out of memory. */
int abilities_drop(struct abilities *a, size_t i);
size_t abilities_dangerous(const struct abilities *a); /* number of those that need a yes */

#define WORDS_COLUMNS 78 /* used if the width of the terminal is not known */

struct words_look {
	bool color;
	bool numbered;  /* "  1. ", to choose from; otherwise "  - " */
	size_t columns; /* lines are folded at this column; 0: WORDS_COLUMNS */
	size_t most;    /* most lines; further places outside the home are only counted; 0: any */
};

/* Writes all abilities as lines "  - text"; dangerous ones come first, as "  ! text". Returns the
 * number of abilities that were only counted. */
size_t abilities_lines(struct buf *out, const struct abilities *a, const struct words_look *look);

/* Writes a text that this program did not choose. It is made visible, and shortened to
 * MAX_WORD_BYTES (its head and its tail). It is quoted unless it contains only letters, digits
 * and characters of plain paths. */
void words_quote(struct buf *out, const char *text);
/* Like words_quote(), but without quotes, for use inside a sentence of this program. */
void words_plain(struct buf *out, const char *text);
/* Appends `text` in lines of at most `columns`. The first line begins with `first`, each further
 * one with spaces and a bar. */
void words_fold(struct buf *out, const char *first, const char *text, size_t columns);

#endif
