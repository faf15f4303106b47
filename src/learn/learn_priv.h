/* learn_priv.h - the state of learn(), shared by learn.c and learn_take.c. */
#ifndef LEARN_LEARN_PRIV_H
#define LEARN_LEARN_PRIV_H

#include "base/error.h"
#include "learn/decoy.h"
#include "learn/learn.h"

struct learner {
	const struct learn_setup *s;
	char *const *args; /* learn_setup.args, or `entry` */
	char *entry[2];    /* the script that was found in a directory without a manifest */
	struct learned *l;
	struct decoys decoys;
	struct string_list variables; /* names of variables that have a value */
	/* Needs that are never proposed, even if later rounds show the same needs as harmless. */
	struct needs barred;
	size_t *fresh;
	size_t n_fresh;
};

static inline int learn_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
}

/* Adds the needs of one round. t->fresh becomes the indices of the new ones. */
int learn_take(struct learner *t, const struct needs *round, struct ssb_error *err);

#endif
