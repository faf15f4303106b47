/* repos.h - the repositories inside writable grants, and around them.
 *
 * The names that the host obeys (policy/protect.h) are protected at the top of
 * each writable grant, and at the top of every repository that is found in it
 * before the skill starts. The search is bounded by limits.h, those that are known
 * from earlier runs (repos_known.h) first, then the nearest;
 * it follows no symlink and stays on the grant's own mount. A repository that
 * the skill makes is not among them. Of repositories around a grant, and of the directories
 * above it, what lies in a grant is held (links.h). */
#ifndef SANDBOX_REPOS_H
#define SANDBOX_REPOS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/string_list.h"
#include "policy/plan.h"
#include "sandbox/links.h"

struct repo {
	size_t grant; /* index into the plan's grants */
	char *path;   /* from the grant's top, never "" unless gitdir */
	bool gitdir;  /* not a working tree but what its .git file leads to: the
	               * names of ".git/" stand directly in it */
	char *shared; /* of a tree: the git directory in the grant by whose settings
	               * it goes, from the top; NULL: not known */
};

/* What the settings of a repository name (repo_config.h) where the skill could write it: as
 * far as it is there. */
struct named {
	size_t grant; /* index into the plan's grants */
	char *path;   /* from its top; "" is that */
	bool is_dir;  /* of hooks; else a file of settings */
	bool whole;   /* the hooks stand at the top of the tree itself, or above it */
};

struct repos {
	size_t n;
	struct repo v[MAX_REPOS];
	size_t n_named;
	struct named named[MAX_NAMED];
	struct string_list hooks;   /* directories of them that the skill cannot write */
	struct string_list around;  /* directories above writable grants (repos_around.h) */
	struct string_list gitdirs; /* where git directories lie that are no ".git" in a grant's
	                             * tree; absolute, without a symlink */
	struct links links;
};

/* Searches the plan's writable grants; *ret is new, and NULL where there are
 * none. What the search had to leave out becomes a warning of the run. What it
 * found is kept in the state directory for the next one (NULL: it is not). */
int repos_find(const struct ssb_plan *plan, struct prepared *of_run, const char *state_dir,
               struct repos **ret, struct ssb_error *err);
void repos_free(struct repos *r); /* accepts NULL */

#endif
