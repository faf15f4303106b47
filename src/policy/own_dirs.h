/* own_dirs.h - the runtime's own directories, which are not shown by a grant that merely contains
 * them.
 *
 * The state directory contains the key that signs traces, the sessions and the sockets that can end
 * runs; the settings directory contains the policy and the store's password. If a grant contains
 * one of them, under whatever name a bind mount gives it, the skill finds an empty directory there
 * that cannot be changed (struct cover). A grant shows such a directory only if the owner names it,
 * or something in it. No grant can show the objects in OWN_SECRETS. */
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

/* If `id` is the state directory itself, grants each object in it by itself, except the secrets,
 * and returns true. So a secret that is created later does not appear either. Otherwise does
 * nothing and returns false. */
bool own_resolve(struct build *b, const struct path_request *r, const char *path,
                 const struct object *id);

/* True if the object of `g` is one of the runtime's own directories, or lies in one. Only the owner
 * can grant such an object, by naming it. False for a grant that merely contains such a
 * directory. */
bool own_named(struct build *b, const struct grant *g);

/* Fills the plan's covers. Must be called after the grants are final. */
void own_build_covers(struct build *b);

#endif
