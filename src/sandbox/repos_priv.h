/* repos_priv.h - the state of a search for repositories, which three files share: repos.c (all
 * grants), repos_search.c (the trees in a grant) and repos_gitdirs.c (where their git directories
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
	size_t most;      /* the most repositories that may be added */
	size_t grant;     /* index of the plan's grant that is searched */
	struct buf queue; /* directories to read: paths relative to the grant's top, each with its
	                     NUL */
	struct buf later; /* directories of packages in the same form, which are read last */
	bool in_packages;
	size_t entries;
	const struct budget *budget;
	const char *cut; /* the reason why a part was not searched; NULL: all was searched */
	/* the reason why a directory of packages was not searched; or NULL */
	const char *package_cut;
	struct ssb_error *err;
	bool failed; /* `err` has the reason; if it is not filled: out of memory */
	bool full;   /* there was no room to hold all directories that are closed to the caller */
};

static inline int repos_grant_fd(const struct repos_search *s, size_t grant)
{
	return prepared_grants(s->of_run, s->plan)[grant].fd;
}

bool repos_is_known(const struct repos_search *s, size_t grant, const char *path, bool gitdir);
void repos_add(struct repos_search *s, size_t grant, const char *path, bool gitdir);

/* repos_cut() notes the reason why a part of the grant was not searched; only the first reason is
 * kept. repos_cut_of() returns the field for the reason: `cut` or `package_cut`. */
const char **repos_cut_of(struct repos_search *s);
void repos_cut(struct repos_search *s, const char *why);

/* Call it after a system call for `path` in a grant failed, with errno unchanged. A path is ignored
 * if it is missing, is a symlink or a socket, or is closed by another user: it is not a repository
 * of the caller. A mount in the grant, or a path that is too long, may contain a repository: the
 * reason is noted. After any other failure the run must not start: `failed` is set. */
void repos_note_unread(struct repos_search *s, size_t grant, const char *path);

/* The type (S_IFMT) of a name in the searched grant; 0: it does not exist. */
mode_t repos_type_of(struct repos_search *s, const char *path);

/* Holds the path and everything in it read-only. */
void repos_hold_whole(struct repos_search *s, const char *path);

/* Adds the working trees and bare repositories in the grant. Visits the paths in `known` first. */
void repos_search_grant(struct repos_search *s, const struct string_list *known);

/* Must be called after repos_search_grant() for all grants; the trees are the first `n_trees`
 * entries. Adds the git directories that the trees of this grant lead to, and the paths that their
 * settings name. */
void repos_gitdirs_follow(struct repos_search *s, size_t n_trees);

/* Must be called once, after repos_gitdirs_follow() for all grants. Adds the git directories and
 * settings that the repositories around all grants lead to, and the git directories of
 * worktrees. */
void repos_gitdirs_around(struct repos_search *s);

#endif
