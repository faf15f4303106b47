/* observe_judge_priv.h - what observe_judge.c and observe_protect.c share. */
#ifndef OBSERVE_OBSERVE_JUDGE_PRIV_H
#define OBSERVE_OBSERVE_JUDGE_PRIV_H

#include "observe/observe.h"
#include "policy/view.h"

/* How many bytes of `path` the place covers; 0: the path is elsewhere. */
size_t observe_covers(const char *place, const char *path);

/* The zone of the nearest place around the path. *ret_rule and *ret_grant are set only if there
 * is one. */
enum zone observe_zone(const struct ssb_plan *plan, const char *path, const char **ret_rule,
                       const struct grant **ret_grant);

/* Does a write to this path in the grant (NULL: in none) meet something that is kept read-only
 * because the host would obey it? */
bool observe_protect_holds(const struct observer *o, const struct grant *g,
                           const struct resolved *at);
/* Does the absolute path have a protected name in it, or does one lead to it? */
bool observe_protect_names(const struct observer *o, const char *path);
/* What to do instead of granting it; NULL: grant it by name. */
const char *observe_protect_remedy(const struct grant *g, const char *path);

#endif
