/* repo_links.h - symlinks that a skill leaves in the git directories of the owner's
 * repositories.
 *
 * git writes through them and deletes what they lead to: COMMIT_EDITMSG, logs/HEAD,
 * FETCH_HEAD and worktrees can lead anywhere in the home. Symlinks there are rare and the
 * owner's own, so those that existed before the run stay, and all others are removed when
 * all processes of the skill have ended. Names decide, not times: a directory that is moved
 * there can contain symlinks that are older than the run. */
#ifndef SANDBOX_REPO_LINKS_H
#define SANDBOX_REPO_LINKS_H

#include "trace/trace.h"
#include "policy/plan.h"
#include "sandbox/repos.h"

struct repo_links;

/* Opens the git directories. Call it before our own placeholders are made: a symlink that a
 * killed run left is newer than that run's placeholders, and is not noted. *ret is new;
 * NULL: no grant contains a git directory. */
int repo_links_new(const struct ssb_plan *plan, const struct prepared *of_run,
                   const struct repos *repos, struct repo_links **ret, struct ssb_error *err);
/* Notes the existing symlinks before the skill starts; `l` may be NULL. If there are too
 * many names, the run gets a warning. */
int repo_links_note(struct repo_links *l, struct prepared *of_run, struct ssb_error *err);
/* Removes the symlinks that were not noted; each is a violation (`trace` may be NULL). */
void repo_links_remove(const struct repo_links *l, struct trace *trace);
void repo_links_free(struct repo_links *l); /* accepts NULL */

#endif
