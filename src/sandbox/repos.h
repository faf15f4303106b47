/* repos.h - finds the repositories inside writable grants and around them.
 *
 * Protected names (policy/protect.h) are protected at the top of each writable grant, and at the
 * top of every repository that is found in it before the skill starts. The search is bounded by
 * limits.h. It visits the repositories that earlier runs found first (KNOWN in repos.c), then the
 * nearest directories; it follows no symlink and stays on the grant's own mount. A repository that
 * the skill makes is not protected. If a repository around a grant, or a directory above one, has
 * protected names that lead into a grant, their targets are held (links.h). */
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
	char *path;   /* relative to the grant's top; never "" unless `gitdir` */
	/* true: `path` is not a working tree but a git directory, which directly contains the names
	 * of ".git/" */
	bool gitdir;
	char *shared; /* only for a working tree: the git directory whose settings it uses, relative
	                 to the grant's top; NULL: not known */
};

/* A path that the settings of a repository name (repo_config.h) and that the skill could write. */
struct named {
	size_t grant; /* index into the plan's grants */
	char *path;   /* relative to the grant's top; "" is the top */
	bool is_dir;  /* true: a directory of hooks; false: a file of settings */
	/* the directory of hooks is the top of the working tree, or a directory above it */
	bool whole;
};

struct repos {
	size_t n;
	struct repo v[MAX_REPOS];
	size_t n_named;
	struct named named[MAX_NAMED];
	struct string_list hooks;   /* directories of hooks that the skill cannot write */
	struct string_list around;  /* directories above writable grants */
	struct string_list gitdirs; /* git directories that are not the ".git" of a tree in a grant;
	                               absolute, without a symlink */
	struct links links;
};

/* Searches the plan's writable grants. *ret is new; NULL: no grant is writable. If a limit stops
 * the search, the run gets a warning. The repositories that were found are stored in `state_dir`
 * for the next run (NULL: not stored). */
int repos_find(const struct ssb_plan *plan, struct prepared *of_run, const char *state_dir,
               struct repos **ret, struct ssb_error *err);
void repos_free(struct repos *r); /* accepts NULL */

#endif
