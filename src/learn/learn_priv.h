/* learn_priv.h - a learning under way: the files of learn.h share this. */
#ifndef LEARN_LEARN_PRIV_H
#define LEARN_LEARN_PRIV_H

#include "base/error.h"
#include "learn/decoy.h"
#include "learn/learn.h"

struct learner {
	const struct learn_setup *s;
	char *const *args; /* the setup's, or `entry` */
	char *entry[2];    /* the script of a directory that says nothing of itself */
	struct learned *l;
	struct decoys decoys;
	struct string_list variables; /* that have a value */
	struct needs barred; /* dangerous for good: what other rounds say changes nothing */
	size_t *fresh;
	size_t n_fresh;
};

static inline int learn_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
}

/* Adds what a round asked for, and remembers which of it is new. */
int learn_take(struct learner *t, const struct needs *round, struct ssb_error *err);

#endif
