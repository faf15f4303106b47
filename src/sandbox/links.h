/* links.h - where the names that the host obeys lead.
 *
 * Such a name (policy/protect.h) may be a symlink, or a .git file that names a directory.
 * It is followed on the host, link by link, before the sandbox is made: inside the sandbox,
 * paths that were not granted are missing on the way. Each link on the way, and its target,
 * is held wherever the skill could write it, in whichever grant. So is each directory that
 * the way leaves by "..", because ".." leads elsewhere if the directory is moved. */
#ifndef SANDBOX_LINKS_H
#define SANDBOX_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/string_list.h"
#include "policy/mounts.h"
#include "policy/plan.h"

/* A path that must stay where it is. */
struct held_path {
	size_t grant;   /* index into the plan's grants */
	char *path;     /* from its top; "" is the top */
	bool read_only; /* with all that is in it */
};

struct links {
	size_t n;
	struct held_path v[MAX_HELD];
	struct string_list paths; /* the read-only ones, by their path in the sandbox */
	struct mounts mounts;     /* the host's mounts; read when they are needed */
};

struct repos;
struct placeholders;

/* Holds an absolute path of the host, without a symlink in it, if the skill could write it.
 * Returns -1 with errno; E2BIG: too many paths are held already. */
int links_add(struct links *l, const struct ssb_plan *plan, const char *path, bool read_only);

/* Finds where an absolute path of the host leads. Returns a new path without a symlink, up
 * to the first name that is missing or closed to the caller (*ret_there is false then, and
 * errno says which). Adds each link on the way to `l`. Returns NULL with errno.
 *
 * A skill must not choose what the caller waits for. If a link that the skill could write
 * leads to a file system that may never answer, such as NFS or FUSE (or `by_skill`: if the
 * path itself comes from a skill), nothing there is looked up unless a grant or the home
 * lies there. The way then ends at its mount point with EXDEV. */
char *links_follow(struct links *l, const struct ssb_plan *plan, const char *path, bool by_skill,
                   bool *ret_there);

/* Adds what the protected names of the writable grants and of the repositories in them lead
 * to, and what the settings of these repositories name. All placeholders must be made
 * before. If a link leads to nothing and the skill could make its target, the target gets a
 * placeholder. A link above the grants that another user has made is not followed. */
int links_hold(const struct ssb_plan *plan, const struct prepared *of_run, struct repos *repos,
               struct placeholders *placeholders, struct ssb_error *err);

/* By errno, after a failed open of `path` from `dir`: true if the host may obey something
 * there. What another user has closed means nothing to the caller's programs. */
bool links_is_unread(int dir, const char *path);
/* By errno: `path`, which the host obeys, cannot be read, so what it leads to is unknown.
 * The run must not start. */
int links_unread(const char *path, struct ssb_error *err);

void links_done(struct links *l);

#endif
