/* prepared.h - creates the paths that a plan names and that do not exist yet.
 *
 * Planning changes nothing. When the run starts, before it builds its sandbox, it makes the missing
 * paths of write grants, and the runtime's own directories that must be covered (struct cover). The
 * plan stays unchanged; prepared_grants() returns its grants with the fds of the created paths. */
#ifndef SANDBOX_PREPARED_H
#define SANDBOX_PREPARED_H

#include "policy/plan.h"

/* Creates each missing directory of each path and follows no symlink. `p` must be zeroed. The
 * caller must call prepared_done(), even after a failure. */
int prepared_make(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err);
/* Removes each file that was made because an argument names it, if it is still empty. Must be
 * called before the plan is freed. Accepts a zeroed `p`. */
void prepared_done(struct prepared *p);

#endif
