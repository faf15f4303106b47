/* repos_around.h - the directories above writable grants.
 *
 * A repository around a grant has its settings, hooks and protected names outside of it, and
 * these may lead into it: what the host obeys there must not be less protected than where the
 * whole repository is granted. */
#ifndef SANDBOX_REPOS_AROUND_H
#define SANDBOX_REPOS_AROUND_H

#include "base/string_list.h"
#include "policy/plan.h"

/* Adds the directories above each writable grant, up to the home or to "/"; none that a grant
 * shows writable, where the search comes by. */
int repos_around(const struct ssb_plan *plan, struct string_list *ret, struct ssb_error *err);

#endif
