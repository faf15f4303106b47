/* own_dirs.h - the runtime's own directories, which no grant shows by containing them.
 *
 * The state directory holds the key that signs traces, the sessions and the
 * sockets by which runs are ended; the directory of settings holds the policy
 * and the store's password. Where a grant contains one of them, by whatever
 * name a bind mount gives it, the skill finds an empty directory there that
 * cannot be changed (struct cover). Only the owner who names such a directory,
 * or something in it, shows it; and what is in OWN_SECRETS nobody does. */
#ifndef POLICY_OWN_DIRS_H
#define POLICY_OWN_DIRS_H

#include <stddef.h>

#include "policy/build.h"

struct own_secret {
	const char *name; /* in the state directory */
	const char *why;
};

extern const struct own_secret OWN_SECRETS[];
extern const size_t OWN_SECRETS_COUNT;

/* Where this is a grant of the state directory itself: becomes grants of what
 * is in it but for the secrets, so that one made later does not appear either.
 * False: it is not. */
bool own_resolve(struct build *b, const struct path_request *r, const char *path,
                 const struct object *id);

/* The object lies in, or is, one of these directories: it was named, and is
 * not included in a grant that only contains it. */
bool own_named(struct build *b, const struct grant *g);

/* The plan's covers; after its grants are final. */
void own_build_covers(struct build *b);

#endif
