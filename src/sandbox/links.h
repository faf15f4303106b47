/* links.h - protects the files that protected names lead to.
 *
 * Programs of the host execute protected names (policy/protect.h) or apply the settings in them.
 * Such a name may be a symlink, or a .git file that names a directory. It is followed on the host,
 * link by link, before the sandbox is made, because ungranted parts of its path do not exist inside
 * the sandbox. Each link on the way, and each target, is held if the skill could write it in some
 * grant. To hold a path means to mount it over itself, so that it can be neither moved nor
 * replaced. Each directory from which the path goes up by ".." is held as well: if the skill could
 * move that directory, ".." would lead to another place. */
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
	char *path;     /* relative to the grant's top; "" is the top */
	bool read_only; /* true: the skill cannot change its content either */
};

struct links {
	size_t n;
	struct held_path v[MAX_HELD];
	struct string_list paths; /* the paths inside the sandbox of the read-only entries of `v` */
	struct mounts mounts;     /* the host's mounts; loaded at the first use */
};

struct repos;
struct placeholders;

/* Holds `path`, an absolute path of the host that contains no symlink, if the skill could write it.
 * Returns 0, or -1 with errno; E2BIG: too many paths are held already. */
int links_add(struct links *l, const struct ssb_plan *plan, const char *path, bool read_only);

/* Finds where an absolute path of the host leads. Returns a new path that contains no symlink, or
 * NULL with errno. If a name is missing or closed to the caller, the path ends with that name,
 * *ret_there is false and errno says why. Adds each link that it passes to `l`.
 *
 * A skill must not make the caller wait for a file system that may never answer, such as NFS or
 * FUSE. So if the skill could write one of the links (or, with `by_skill`, if the path itself comes
 * from a skill), nothing is looked up in such a file system unless it contains a grant or the home.
 * The returned path then ends at its mount point, *ret_there is false and errno is EXDEV. */
char *links_follow(struct links *l, const struct ssb_plan *plan, const char *path, bool by_skill,
                   bool *ret_there);

/* Adds to repos->links the targets of the protected names in writable grants and in their
 * repositories, and the paths that the settings of these repositories name. All placeholders must
 * exist before the call. If a link leads to nothing and the skill could make its target, the target
 * gets a placeholder. A link above the grants is not followed if another user made it. */
int links_hold(const struct ssb_plan *plan, const struct prepared *of_run, struct repos *repos,
               struct placeholders *placeholders, struct ssb_error *err);

/* Call it after opening `path` from `dir` failed, with errno unchanged. Returns true if the host
 * may nevertheless execute or apply a file there. A path that another user has closed to the caller
 * does not count: the caller's programs cannot read it either. */
bool links_is_unread(int dir, const char *path);
/* Fills `err` by errno: `path`, which the host executes or applies, cannot be read, so its target
 * is unknown and the run must not start. Always returns -1. */
int links_unread(const char *path, struct ssb_error *err);

void links_done(struct links *l);

#endif
