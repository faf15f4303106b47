/* prepared.h - makes what a plan names and does not exist yet.
 *
 * Planning changes nothing. Paths that a write grant names, and places of the runtime's own
 * that have to be covered, are made when the run starts, before it builds its sandbox. The
 * plan stays unchanged: what was made is kept here, see prepared_grants(). */
#ifndef SANDBOX_PREPARED_H
#define SANDBOX_PREPARED_H

#include "policy/plan.h"

/* Makes one directory after the other, following no symlink. `p` must be zeroed. Call
 * prepared_done() in every case. */
int prepared_make(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err);
void prepared_done(struct prepared *p); /* accepts a zeroed one */

#endif
