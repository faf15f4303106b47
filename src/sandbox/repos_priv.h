/* repos_priv.h - one search for repositories, shared by the files that do its parts: repos.c,
 * repos_search.c (the trees in a grant), repos_gitdirs.c (where their git directories lie). */
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
	size_t most;      /* that can be held */
	size_t grant;     /* of the plan: where it looks */
	struct buf queue; /* directories to be read: paths from the top, each with its NUL */
	struct buf later; /* those of packages, which are read when all others are */
	bool in_packages;
	size_t entries;
	const struct budget *budget;
	const char *cut;         /* why something was left out; NULL: nothing was */
	const char *package_cut; /* the same, of packages alone */
	struct ssb_error *err;
	bool failed; /* by what err says, or without memory */
	bool full;   /* more is closed to the caller than can be held */
};

static inline int repos_grant_fd(const struct repos_search *s, size_t grant)
{
	return prepared_grants(s->of_run, s->plan)[grant].fd;
}

bool repos_is_known(const struct repos_search *s, size_t grant, const char *path, bool gitdir);
void repos_add(struct repos_search *s, size_t grant, const char *path, bool gitdir);

/* Something was left out of what is searched now; the first reason is told. */
const char **repos_cut_of(struct repos_search *s);
void repos_cut(struct repos_search *s, const char *why);

/* After a failed call for what lies in a grant. What is not there, is a symlink or a socket, or
 * is closed by another user is no repository of the caller's. A mount in the grant may hold one,
 * and so may all that cannot be read for another reason: then the run must not start. */
void repos_note_unread(struct repos_search *s, size_t grant, const char *path);

/* What a name in the searched grant is, S_IFMT; 0: nothing. */
mode_t repos_type_of(struct repos_search *s, const char *path);

/* Read-only, with all that is in it. */
void repos_hold_whole(struct repos_search *s, const char *path);

/* Adds the trees and bare repositories in the grant; those at the paths `known` first. */
void repos_search_grant(struct repos_search *s, const struct string_list *known);

/* When the trees of all grants are known, which are the first `n_trees` that were found: adds the
 * git directories that the trees of this grant lead to, and what their settings name. Most lie in
 * one of the trees. */
void repos_gitdirs_follow(struct repos_search *s, size_t n_trees);

/* After that, once: adds what the repositories around all grants lead to, and the git directories
 * of worktrees. */
void repos_gitdirs_around(struct repos_search *s);

#endif
