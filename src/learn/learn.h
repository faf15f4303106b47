/* learn.h - a skill is run with decoys, again and again, until it asks for nothing new.
 *
 * Each round is a recorded run of its own. What it asked for (needs.h) has a stand-in in
 * the next one, so that the skill comes further: with the key it looks for, it asks for
 * the host that the key is for. Nothing of the owner's is shown but what the owner names,
 * nothing is written outside of the decoys, and nothing leaves the machine unless the
 * owner says so. */
#ifndef LEARN_LEARN_H
#define LEARN_LEARN_H

#include "learn/needs.h"
#include "policy/options.h"
#include "skill/skill.h"

enum learn_word {
	LEARN_DECOY, /* a stand-in; the usual answer */
	LEARN_REAL,  /* for this learning the thing itself, to be read or connected to */
	LEARN_NO,    /* not even a stand-in, and it is not proposed */
};

struct learn_round {
	unsigned number; /* from 1 */
	const struct ssb_result *result;
	const struct needs *needs; /* all so far */
	const size_t *fresh;       /* which of them are new in this round */
	size_t n_fresh;
	const char *output; /* what it wrote to both streams, at most MAX_LEARN_OUTPUT */
	size_t output_len;
	bool output_cut;
	bool canary; /* a decoy's content is in it */
};

struct learn_setup {
	const struct owner *owner;
	const char *dir;             /* real, absolute */
	char *const *args;           /* may be NULL */
	struct ssb_options *options; /* the owner's word; what is learned on is added to it */
	bool connect;                /* public hosts are really reached */
	/* After each round, the last included. */
	void (*told)(void *arg, const struct learn_round *r);
	/* Of each new need; NULL: nobody is asked, and it is LEARN_DECOY. */
	enum learn_word (*ask)(void *arg, const struct need *n, bool can_be_real);
	void *arg;
};

struct learned {
	struct skill_found base; /* what the skill said of itself before */
	struct needs needs;      /* tried, or for its variables: spoken of */
	unsigned rounds;
	bool settled;    /* the last round brought nothing new */
	bool canceled;   /* the owner ended it */
	int exit_status; /* of the last round */
};

/* -1 where a round could not be run; what was learned before is in *ret all the same. */
int learn(const struct learn_setup *s, struct learned *ret, struct ssb_error *err);
void learned_done(struct learned *l);

#endif
