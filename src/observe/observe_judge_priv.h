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

/* Fills the judgement for a refused path. The remedy is the flag with the path. */
void observe_refuse_path(struct judgement *j, enum reason reason, int error, const char *flag,
                         const char *path);
/* Returns whether the path exists outside the sandbox, where the owner could read it. A file can be
 * hidden only in a place that the sandbox does not show completely. In a root file system that the
 * owner chose, the names are not those of the host. */
bool observe_is_hidden(const struct observer *o, const char *path, enum zone zone);
/* Returns whether programs try to keep a cache at the path, but also work without it. Interpreters
 * write compiled files beside their sources, other programs write a list of fonts, and Chromium
 * makes a directory for extensions. */
bool observe_is_cache(const char *path);
/* Returns whether the path is or lies in a directory of the runtime. */
bool observe_is_runtime(const struct observer *o, const char *path);
/* Returns whether the sandbox has a file, a directory or a symlink at the path. */
bool observe_is_there(const struct observer *o, const char *path);

/* Returns whether the path is kept read-only in the grant `g` (NULL: the path is in no grant)
 * because the host would execute it or read settings from it. */
bool observe_protect_holds(const struct observer *o, const struct grant *g,
                           const struct resolved *at);
/* Returns whether the absolute path contains a protected name, or a protected name leads to it. */
bool observe_protect_names(const struct observer *o, const char *path);
/* Returns the remedy if it is not to grant the path itself; NULL: the path must be granted by
 * name. */
const char *observe_protect_remedy(const struct grant *g, const char *path);
/* Returns what the owner can do if no grant lets a skill replace or delete the path. */
const char *observe_protect_instead(const char *path);

#endif
