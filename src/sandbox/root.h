/* root.h - helpers that build the new root from the view table (policy/view.h) and the
 * grants. */
#ifndef SANDBOX_ROOT_H
#define SANDBOX_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/landlock.h"
#include "policy/view.h"

#define LL_ALL (LL_READ | LL_EXEC | LL_WRITE | LL_CHANGE | LL_SPECIAL)

/* The Landlock rights beneath a grant. */
unsigned grants_rights(const struct grant *g);

/* The attributes of a grant's mounts (MOUNT_ATTR_*). */
uint64_t grants_attrs(const struct grant *g);

/* Replaces the detached tree *tree by a detached read-only overlay over it. The overlay has inodes
 * of its own and does not show mounts that lie in the tree. `empty` (borrowed) is a directory that
 * is always empty. Returns 0, or -1 with errno if the kernel cannot make the overlay; *tree then
 * still shows the same files and is detached. */
int root_overlay(int root_fd, int empty, int *tree);

/* Mounts the object behind fd over itself, so that it cannot be renamed, removed or
 * replaced. With `read_only` its content cannot be changed either. */
int root_pin(int fd, bool read_only);
/* true if the object is a mount point, which cannot be moved or replaced */
bool root_is_pinned(int fd);

/* Creates the missing parents of `path` (relative to root) and then `path` itself, as an empty
 * directory or file, unless it exists. Follows no symlink. Returns 0, or -1 with errno. */
int root_make_place(int root, const char *path, bool dir);
/* Makes a file with this text. Returns 0, or -1 with errno. */
int root_make_file(int root, const char *name, const char *text);

/* The program that runs a Skillware skill (SKILL_WORKER). The file view contains it if the plan's
 * command names it (worker_named()). */
extern const char *const WORKER_TEXT;
bool worker_named(const struct ssb_plan *plan);

#endif
