/* repos.h - the repositories inside writable grants, and around them.
 *
 * The names that the host obeys (policy/protect.h) are protected at the top of each
 * writable grant, and at the top of every repository that is found in it before the skill
 * starts. The search is bounded by limits.h. It visits the repositories that earlier runs
 * found first (repos_known.h), then the nearest directories; it follows no symlink and
 * stays on the grant's own mount. A repository that the skill makes is not protected. For
 * repositories around a grant, and for the directories above it, the names that lie in a
 * grant are held (links.h). */
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
	bool gitdir;  /* not a working tree but the directory that its .git file names: the names of
	                 ".git/" lie directly in it */
	char *shared; /* of a tree: the git directory in the grant whose settings it uses, from the
	                 top; NULL: not known */
};

/* What the settings of a repository name (repo_config.h), if the skill could write it: as
 * much of the path as exists. */
struct named {
	size_t grant; /* index into the plan's grants */
	char *path;   /* from its top; "" is the top */
	bool is_dir;  /* a directory of hooks; false: a file of settings */
	bool whole;   /* the directory of hooks is the top of the tree itself, or above it */
};

struct repos {
	size_t n;
	struct repo v[MAX_REPOS];
	size_t n_named;
	struct named named[MAX_NAMED];
	struct string_list hooks;   /* directories of hooks that the skill cannot write */
	struct string_list around;  /* directories above writable grants (repos_around.h) */
	struct string_list gitdirs; /* git directories that are not the ".git" of a tree in a grant;
	                               absolute, without a symlink */
	struct links links;
};

/* Searches the plan's writable grants. *ret is new; NULL: no grant is writable. What the
 * search had to leave out becomes a warning of the run. What it found is stored in the
 * state directory for the next run (NULL: not stored). */
int repos_find(const struct ssb_plan *plan, struct prepared *of_run, const char *state_dir,
               struct repos **ret, struct ssb_error *err);
void repos_free(struct repos *r); /* accepts NULL */

#endif
