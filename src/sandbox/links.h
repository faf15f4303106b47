/* links.h - where the names that the host obeys lead.
 *
 * Such a name (policy/protect.h) may be a symlink, or a .git file that names a
 * directory. It is followed on the host, link by link, before the sandbox is made:
 * inside, what was not granted is missing on the way. Each link that it goes by, and
 * what it means, is held where the skill could write it, whichever grant that is; and each
 * directory that it leaves by "..", which would lead elsewhere from another. */
#ifndef SANDBOX_LINKS_H
#define SANDBOX_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/string_list.h"
#include "policy/mounts.h"
#include "policy/plan.h"

/* Stays where it is. */
struct held {
	size_t grant;   /* index into the plan's grants */
	char *path;     /* from its top; "" is that */
	bool read_only; /* as a whole */
};

struct links {
	size_t n;
	struct held v[MAX_HELD];
	struct string_list paths; /* in the sandbox, of those that are read-only */
	struct mounts mounts;     /* of the host; read when they matter */
};

struct repos;
struct placeholders;

/* Holds an absolute path of the host, without a symlink in it, where the skill could write it.
 * -1 with errno: E2BIG where that is one too many. */
int links_add(struct links *l, const struct ssb_plan *plan, const char *path, bool read_only);

/* Where an absolute path of the host leads: new, without a symlink; as far as the first
 * name that is not there, or closed to the caller (*ret_there is false, errno says which). What
 * it goes by is added to `l`. NULL with errno.
 *
 * A skill must not choose what the caller waits for: where a link that it could write leads (or
 * `by_skill`: the path itself is a skill's word), no file system is asked that may never answer,
 * such as NFS and FUSE, unless a grant or the home lies there. The way ends where it is mounted,
 * with EXDEV. */
char *links_follow(struct links *l, const struct ssb_plan *plan, const char *path, bool by_skill,
                   bool *ret_there);

/* Adds what the protected names lead to, of the writable grants and of the repositories in
 * them, and what the settings of these name; when all that is to be held has its placeholder. What
 * a link to nothing means gets one, where the skill could make it. A link above the grants that
 * another user has made there is not followed. */
int links_hold(const struct ssb_plan *plan, const struct prepared *of_run, struct repos *repos,
               struct placeholders *placeholders, struct ssb_error *err);

/* By errno, after a failed open of `path` from `dir` on: something may be there that the host
 * obeys. What another user has closed is nothing to programs of the caller's. */
bool links_is_unread(int dir, const char *path);
/* By errno: `path`, which the host obeys, cannot be read, and so nobody knows what it leads to.
 * The run must not start. */
int links_unread(const char *path, struct ssb_error *err);

void links_done(struct links *l);

#endif
