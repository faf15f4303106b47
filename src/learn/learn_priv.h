/* learn_priv.h - the state of learn(), shared by learn.c and learn_take.c. */
#ifndef LEARN_LEARN_PRIV_H
#define LEARN_LEARN_PRIV_H

#include "base/error.h"
#include "learn/decoy.h"
#include "learn/learn.h"

struct learner {
	const struct learn_setup *s;
	char *const *args; /* the setup's, or `entry` */
	char *entry[2];    /* the script that was found in a directory without a manifest */
	struct learned *l;
	struct decoys decoys;
	struct string_list variables; /* names that have a value */
	struct needs barred;          /* dangerous, whatever other rounds show */
	size_t *fresh;
	size_t n_fresh;
};

static inline int learn_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
}

/* Adds what a round asked for. t->fresh becomes the indices of what is new. */
int learn_take(struct learner *t, const struct needs *round, struct ssb_error *err);

#endif
