/* caches.h - the directories that skills keep between runs (--cache): their size and their removal.
 *
 * A skill wrote everything in a cache, so nothing in it is read, followed or executed here: names
 * are only counted and removed, from held directories.
 *
 * A cache that is larger than its limit, or that cannot be measured, is emptied as a whole, before
 * and after each run. Removing only some files would break tools that trust what they find, as Go
 * does with a module. A run holds a shared lock on its cache. Only the holder of the exclusive lock
 * empties or removes a cache, so no run loses files that it uses. */
#ifndef SANDBOX_CACHES_H
#define SANDBOX_CACHES_H

#include "policy/plan.h"

/* Locks and measures the cache of the plan, if it has one; its grants must be prepared. Refuses the
 * run if the cache is too large and another run uses it. */
int caches_begin(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err);
/* Measures the cache again, and adds a warning to `p` if it was emptied. */
void caches_end(const struct ssb_plan *plan, struct prepared *p);

struct caches_sum {
	size_t removed;
	size_t busy; /* a run uses them */
	size_t failed;
	uint64_t bytes;
};

/* Removes the caches that were last used before `before` (seconds since 1970). If `dry`, only
 * counts them. */
void caches_prune(const char *state_dir, int64_t before, bool dry, struct caches_sum *ret);

#endif
