/* observe_judge_priv.h - declarations that observe_judge.c and observe_protect.c share. */
#ifndef OBSERVE_OBSERVE_JUDGE_PRIV_H
#define OBSERVE_OBSERVE_JUDGE_PRIV_H

#include "observe/observe.h"
#include "policy/view.h"

/* If `path` is `place` or beneath it, returns the length of `place`; otherwise 0. */
size_t observe_covers(const char *place, const char *path);

/* Returns the zone of the innermost known place that contains the path. *ret_rule is never
 * RULE_NONE. *ret_grant is NULL if that place is not granted; with RULE_ENTRY it is not NULL. */
enum zone observe_zone(const struct ssb_plan *plan, const char *path, enum event_rule *ret_rule,
                       const struct grant **ret_grant);

/* Returns whether the path is kept read-only in the grant `g` (NULL: the path is in no grant)
 * because the host would execute it or read settings from it. */
bool observe_protect_holds(const struct observer *o, const struct grant *g,
                           const struct resolved *at);
/* Returns whether the absolute path contains a protected name, or a protected name leads to it. */
bool observe_protect_names(const struct observer *o, const char *path);
/* Returns the remedy if it is not to grant the path itself; NULL: the path must be granted by
 * name. */
const char *observe_protect_remedy(const struct grant *g, const char *path);

#endif
