/* repos_around.h - lists the directories above writable grants.
 *
 * A repository around a grant has its settings, hooks and protected names outside of the grant, and
 * these may lead into the grant. The files in the grant that they lead to must be protected as if
 * the whole repository were granted. */
#ifndef SANDBOX_REPOS_AROUND_H
#define SANDBOX_REPOS_AROUND_H

#include "base/string_list.h"
#include "policy/plan.h"

/* Adds to `ret` the directories above each writable grant, up to the home or to "/". Directories
 * that lie in a writable grant themselves are left out, because the search for repositories visits
 * them anyway. */
int repos_around(const struct ssb_plan *plan, struct string_list *ret, struct ssb_error *err);

#endif
