/* repos_around.h - the directories above writable grants.
 *
 * A repository around a grant has its settings, hooks and protected names outside of the
 * grant, and these may lead into it. What the host obeys there must be protected as well as
 * if the whole repository were granted. */
#ifndef SANDBOX_REPOS_AROUND_H
#define SANDBOX_REPOS_AROUND_H

#include "base/string_list.h"
#include "policy/plan.h"

/* Adds the directories above each writable grant, up to the home or to "/", except those
 * that a grant shows as writable: the search visits them itself. */
int repos_around(const struct ssb_plan *plan, struct string_list *ret, struct ssb_error *err);

#endif
