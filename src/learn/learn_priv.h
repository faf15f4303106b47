/* learn_priv.h - the state of learn(), shared by learn.c and learn_take.c. */
#ifndef LEARN_LEARN_PRIV_H
#define LEARN_LEARN_PRIV_H

#include "base/error.h"
#include "learn/decoy.h"
#include "learn/learn.h"

/* A variable that the skill may ask for. */
struct learn_variable {
	char *name;
	char *pair;    /* NAME=made-up value; NULL: it never has a value */
	bool left_out; /* the skill gets further without the made-up value */
};

struct learner {
	const struct learn_setup *s;
	char *const *args; /* learn_setup.args, or `entry` */
	char *entry[2];    /* the script that was found in a directory without a manifest */
	struct learned *l;
	struct decoys decoys;
	struct learn_variable *variables;
	size_t n_variables;
	size_t n_owner_env; /* how many variables the owner gives with --env */
	bool bare;          /* in this round no variable has a made-up value */
	/* Needs that are never proposed, even if later rounds show the same needs as harmless. */
	struct needs barred;
	size_t *fresh;
	size_t n_fresh;
	bool trial;       /* this round tries without one variable */
	enum ssb_end end; /* of the last round */
	unsigned limit;   /* maximum number of rounds */
	uint64_t until;   /* no round begins after this time of clock_ms() */
};

static inline int learn_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
}

/* Gives the variable a made-up value, unless it is `empty` or the owner gives a value. The skill
 * never gets the caller's value. Does nothing if the variable is known already. */
int learn_variable_add(struct learner *t, const char *name, bool empty, struct ssb_error *err);
bool learn_variable_known(const struct learner *t, const char *name);
/* Returns how many variables have a made-up value when the round is not `bare`. */
size_t learn_variables_given(const struct learner *t);
/* Sets the options for the next round. */
int learn_variables_set(struct learner *t, struct ssb_error *err);
/* Marks as optional each variable without which the skill gets further. */
void learn_variables_mark(const struct learner *t, struct needs *s);
void learn_variables_done(struct learner *t);

/* Shows decoys at the paths that the skill's files mention, because a skill may first look whether
 * they exist, which no record shows. What no round uses becomes a comment in the manifest. */
int learn_lay_hints(struct learner *t, const struct needs *hints, struct ssb_error *err);
/* Returns true if the owner lets the skill read `path`, which is absolute. */
bool learn_is_granted(const struct learner *t, const char *path);

/* Adds the needs of one round. t->fresh becomes the indices of the new ones. */
int learn_take(struct learner *t, const struct needs *seen, struct ssb_error *err);

#endif
