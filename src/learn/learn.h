/* learn.h - runs a skill with decoys, again and again, until it asks for nothing new.
 *
 * Each round is a separate recorded run. Everything that the skill asked for in a round
 * (needs.h) has a stand-in in the next round, so that the skill gets further: when it finds
 * the key that it looks for, it asks for the host where it uses the key. The skill sees only
 * those files of the owner that the owner names, and writes nothing outside the decoys.
 * Nothing leaves the machine unless the owner allows it. */
#ifndef LEARN_LEARN_H
#define LEARN_LEARN_H

#include "learn/needs.h"
#include "policy/options.h"
#include "skill/skill.h"

enum learn_word {
	LEARN_DECOY, /* a stand-in; the default answer */
	LEARN_REAL,  /* the real thing, to read or to connect to, until learn ends */
	LEARN_NO,    /* no stand-in, and no proposal */
};

struct learn_begin {
	unsigned number;  /* from 1 */
	size_t made_up;   /* how many variables have made-up values in this round */
	size_t left_out;  /* how many have none, to see whether the skill needs them */
	uint64_t seconds; /* the round's time limit; 0: none */
};

struct learn_round {
	unsigned number; /* from 1 */
	const struct ssb_result *result;
	const struct needs *needs; /* the needs of all rounds so far */
	const size_t *fresh;       /* indices of the needs that are new in this round */
	size_t n_fresh;
	bool in_vain;       /* it tried without one variable, and the skill needs this variable */
	const char *output; /* the skill's output to both streams, at most MAX_LEARN_OUTPUT */
	size_t output_len;
	bool output_cut;
	bool canary; /* the output contains the content of a decoy */
};

struct learn_setup {
	const struct owner *owner;
	const char *dir;   /* real, absolute */
	char *const *args; /* may be NULL */
	/* The owner's options. learn() adds the stand-ins, and what the answers of the owner
	 * allow. */
	struct ssb_options *options;
	struct ssb_diags *diags; /* for findings about the skill; may be NULL */
	bool connect;            /* also connect to public hosts that the owner does not name */
	/* Called before each round; may be NULL. */
	void (*begun)(void *arg, const struct learn_begin *b);
	struct ssb_watch watch; /* of each round; on_record may be NULL */
	/* Called after each round, including the last. */
	void (*told)(void *arg, const struct learn_round *r);
	/* Asks the owner about each new need; NULL: every answer is LEARN_DECOY. */
	enum learn_word (*ask)(void *arg, const struct need *n, bool can_be_real);
	void *arg;
};

struct learned {
	struct skill_found base; /* the skill, with its manifest before learning */
	struct needs needs;      /* what the skill tried, and variables that its files mention */
	unsigned rounds;
	bool settled;    /* the last round showed no new need */
	bool canceled;   /* the owner ended the learning early */
	bool timed_out;  /* the last round reached its time limit */
	int exit_status; /* exit status of the skill in the last round */
};

/* Runs the rounds. Returns -1 if a round could not run; *ret then still contains what was learned
 * before. The caller must pass *ret to learned_done(). */
int learn(const struct learn_setup *s, struct learned *ret, struct ssb_error *err);
void learned_done(struct learned *l);

#endif
