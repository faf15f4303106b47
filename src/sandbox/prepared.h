/* prepared.h - making what a plan names and does not exist yet.
 *
 * Planning changes nothing. What a write grant names, and places of the runtime's own that have
 * to be covered, are made when the run starts, before it builds its sandbox. The plan stays as it
 * is: what was made is held here, by prepared_grants(). */
#ifndef SANDBOX_PREPARED_H
#define SANDBOX_PREPARED_H

#include "policy/plan.h"

/* One directory after the other, following no symlink. `p` is zeroed before, and done in every
 * case. */
int prepared_make(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err);
void prepared_done(struct prepared *p); /* accepts a zeroed one */

#endif
