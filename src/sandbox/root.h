/* root.h - how the new root is made: of the table of the view (policy/view.h), and of grants. */
#ifndef SANDBOX_ROOT_H
#define SANDBOX_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/landlock.h"
#include "policy/view.h"

#define LL_ALL (LL_READ | LL_EXEC | LL_WRITE | LL_CHANGE | LL_SPECIAL)

/* What may be done beneath a grant: Landlock's side of it. */
unsigned grants_rights(const struct grant *g);

/* The attributes of a grant's mounts (MOUNT_ATTR_*). */
uint64_t grants_attrs(const struct grant *g);

/* Puts a read-only overlay in the place of the loose tree *tree, in the new root: other
 * inodes, and nothing of what is mounted in it. `empty` (borrowed) is a directory in which
 * nothing ever is. -1 with errno where there is none, and *tree is as loose as before
 * (grants.c). */
int root_overlay(int root_fd, int empty, int *tree);

/* Mounts the object behind fd over itself: it can no longer be renamed,
 * removed or replaced, and with `read_only` not be changed either. */
int root_pin(int fd, bool read_only);
bool root_is_pinned(int fd); /* a mount stands on it already: it cannot be moved */

/* Makes the parents of `path` (relative to root) and the thing itself, unless
 * they exist; follows no symlink. -1 with errno. */
int root_make_place(int root, const char *path, bool dir);
/* Makes a file with this text. -1 with errno. */
int root_make_file(int root, const char *name, const char *text);

/* The program that runs a Skillware skill (SKILL_WORKER); it is shown where the plan names
 * it. */
extern const char *const WORKER_TEXT;
bool worker_named(const struct ssb_plan *plan);

#endif
