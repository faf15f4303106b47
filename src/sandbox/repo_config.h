/* repo_config.h - what git's settings for one tree name.
 *
 * The hooks may stand in any directory (core.hooksPath), and other files may be part of the
 * settings (include.path): what is written there the host obeys as it does .git/hooks and
 * .git/config. */
#ifndef SANDBOX_REPO_CONFIG_H
#define SANDBOX_REPO_CONFIG_H

#include "policy/plan.h"
#include "sandbox/repos.h"

/* Adds to found->named what they name in a writable grant; the links on the way are held.
 * `tree` is absolute: a working tree, of which there may be no repository. What a bound left
 * out is told in *ret_cut (static), which is untouched else. -1 without memory, and where
 * settings are there and cannot be read, which `err` says. */
int repo_config_read(const struct ssb_plan *plan, struct repos *found, const char *tree,
                     const char **ret_cut, struct ssb_error *err);

#endif
