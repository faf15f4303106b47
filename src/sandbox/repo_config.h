/* repo_config.h - which files and directories git's settings for one tree name.
 *
 * The hooks may lie in any directory (core.hooksPath), and other files may be part of the
 * settings (include.path): the host obeys what is written there as it obeys .git/hooks and
 * .git/config. */
#ifndef SANDBOX_REPO_CONFIG_H
#define SANDBOX_REPO_CONFIG_H

#include "policy/plan.h"
#include "sandbox/repos.h"

/* Adds to found->named what the settings name in a writable grant, and holds the links on
 * the way. `tree` is absolute: a working tree, which may have no repository. If a bound
 * left something out, *ret_cut is the reason (static); otherwise it is not touched. Returns
 * -1 if memory is missing or existing settings cannot be read; `err` says which. */
int repo_config_read(const struct ssb_plan *plan, struct repos *found, const char *tree,
                     const char **ret_cut, struct ssb_error *err);

#endif
