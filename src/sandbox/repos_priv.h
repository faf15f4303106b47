/* repos_priv.h - one search for repositories, shared by its parts: repos.c (all grants),
 * repos_search.c (the trees in a grant) and repos_gitdirs.c (where their git directories
 * lie). */
#ifndef SANDBOX_REPOS_PRIV_H
#define SANDBOX_REPOS_PRIV_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/string_list.h"
#include "os/budget.h"
#include "policy/plan.h"
#include "sandbox/repos.h"

#define REPOS_TOO_DEEP "it is too deep"
#define REPOS_IN_GRANT (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct repos_search {
	const struct ssb_plan *plan;
	const struct prepared *of_run;
	struct repos *found;
	size_t most;      /* how many can be held */
	size_t grant;     /* index of the plan's grant that is searched */
	struct buf queue; /* directories to read: paths from the top, each with its NUL */
	struct buf later; /* directories of packages, read after all others */
	bool in_packages;
	size_t entries;
	const struct budget *budget;
	const char *cut;         /* why something was left out; NULL: nothing was */
	const char *package_cut; /* the same, for packages alone */
	struct ssb_error *err;
	bool failed; /* `err` says why, or out of memory */
	bool full;   /* more directories are closed to the caller than can be held */
};

static inline int repos_grant_fd(const struct repos_search *s, size_t grant)
{
	return prepared_grants(s->of_run, s->plan)[grant].fd;
}

bool repos_is_known(const struct repos_search *s, size_t grant, const char *path, bool gitdir);
void repos_add(struct repos_search *s, size_t grant, const char *path, bool gitdir);

/* Notes that something in the searched grant was left out. The first reason is reported. */
const char **repos_cut_of(struct repos_search *s);
void repos_cut(struct repos_search *s, const char *why);

/* Call it after a failed call for a path in a grant. A path that is missing, a symlink, a
 * socket or closed by another user is not a repository of the caller's. A mount in the
 * grant may contain one, and so may anything that cannot be read for another reason: then
 * the run must not start. */
void repos_note_unread(struct repos_search *s, size_t grant, const char *path);

/* The type (S_IFMT) of a name in the searched grant; 0: it does not exist. */
mode_t repos_type_of(struct repos_search *s, const char *path);

/* Holds the path read-only, with all that is in it. */
void repos_hold_whole(struct repos_search *s, const char *path);

/* Adds the trees and bare repositories in the grant, and first those at the paths `known`. */
void repos_search_grant(struct repos_search *s, const struct string_list *known);

/* Call it when the trees of all grants are known; they are the first `n_trees` entries.
 * Adds the git directories that the trees of this grant lead to, and what their settings
 * name. Most of them lie in one of the trees. */
void repos_gitdirs_follow(struct repos_search *s, size_t n_trees);

/* Call it once, after that. Adds what the repositories around all grants lead to, and the
 * git directories of worktrees. */
void repos_gitdirs_around(struct repos_search *s);

#endif
