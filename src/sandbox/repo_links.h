/* repo_links.h - symlinks that a skill leaves in the git directories of the owner's repositories.
 *
 * git writes through them and deletes what they lead to: COMMIT_EDITMSG, logs/HEAD, FETCH_HEAD
 * and worktrees can lead anywhere in the home. Symlinks there are rare and the owner's own, so
 * those that were there before the run stay, and all others are removed when all processes of
 * the skill are gone. The names decide, not times: a directory that is moved there brings
 * symlinks that are older than the run. */
#ifndef SANDBOX_REPO_LINKS_H
#define SANDBOX_REPO_LINKS_H

#include "trace/trace.h"
#include "policy/plan.h"
#include "sandbox/repos.h"

struct repo_links;

/* Opens the git directories, before our own placeholders are there: what a killed run has left is
 * newer than its placeholders, and is not noted. *ret is new, and NULL without a git directory in
 * a grant. */
int repo_links_new(const struct ssb_plan *plan, const struct prepared *of_run,
                   const struct repos *repos, struct repo_links **ret, struct ssb_error *err);
/* Notes the symlinks that are there, before the skill starts; `l` may be NULL. Where there are too
 * many names the run gets a warning. */
int repo_links_note(struct repo_links *l, struct prepared *of_run, struct ssb_error *err);
/* Removes those that are there now and were not noted; each is a violation (`trace` may be
 * NULL). */
void repo_links_remove(const struct repo_links *l, struct trace *trace);
void repo_links_free(struct repo_links *l); /* accepts NULL */

#endif
