/* repo_links.h - removes symlinks that a skill leaves in the git directories of the owner's
 * repositories.
 *
 * git writes through such symlinks (COMMIT_EDITMSG, logs/HEAD, FETCH_HEAD, worktrees) and deletes
 * their targets, which can lie anywhere in the home. The owner rarely has symlinks in a git
 * directory. Symlinks that existed before the run stay; all others are removed when all processes
 * of the skill have ended. A symlink is recognized by its path and target, not by its time: the
 * skill can move a directory with older symlinks into a git directory. */
#ifndef SANDBOX_REPO_LINKS_H
#define SANDBOX_REPO_LINKS_H

#include "trace/trace.h"
#include "policy/plan.h"
#include "sandbox/repos.h"

struct repo_links;

/* Opens the git directories. Call it before our own placeholders are made: the placeholders of an
 * earlier, killed run then show which symlinks that run left. These symlinks are newer than the
 * placeholders, and are not noted. *ret is new; it is NULL if no grant contains a git directory. */
int repo_links_new(const struct ssb_plan *plan, const struct prepared *of_run,
                   const struct repos *repos, struct repo_links **ret, struct ssb_error *err);
/* Notes the existing symlinks; must be called before the skill starts. `l` may be NULL. If a git
 * directory has too many names, a warning is added to of_run->warnings. */
int repo_links_note(struct repo_links *l, struct prepared *of_run, struct ssb_error *err);
/* Removes the symlinks that were not noted and records each in the trace as a violation. `l` and
 * `trace` may be NULL. */
void repo_links_remove(const struct repo_links *l, struct trace *trace);
void repo_links_free(struct repo_links *l); /* accepts NULL */

#endif
