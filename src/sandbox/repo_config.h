/* repo_config.h - finds the files and directories that git's settings for one tree name.
 *
 * The settings can name a directory of hooks (core.hooksPath) and include other files
 * (include.path). The owner's git executes such hooks like those in .git/hooks, and reads such
 * files like .git/config. So they need the same protection. */
#ifndef SANDBOX_REPO_CONFIG_H
#define SANDBOX_REPO_CONFIG_H

#include "policy/plan.h"
#include "sandbox/repos.h"

/* Adds to found->named the paths in writable grants that the settings name, and holds the links
 * that lead to them. `tree` is the absolute path of a working tree, which need not have a
 * repository. If some paths were left out because of a limit, *ret_cut is set to the reason
 * (static); otherwise it is not touched. Returns 0, or -1 if there is no memory (`err` may then be
 * unfilled) or existing settings cannot be read. */
int repo_config_read(const struct ssb_plan *plan, struct repos *found, const char *tree,
                     const char **ret_cut, struct ssb_error *err);

#endif
