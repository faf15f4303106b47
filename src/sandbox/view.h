/* view.h - the one table of what the skill sees of the system. */
#ifndef SANDBOX_VIEW_H
#define SANDBOX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/landlock.h"
#include "policy/plan.h"

#define LL_ALL (LL_READ | LL_EXEC | LL_WRITE | LL_CHANGE | LL_SPECIAL)

/* What comes from the host, read-only, and the device nodes; relative to "/". */
extern const char *const VIEW_HOST[];
extern const size_t VIEW_HOST_COUNT;
extern const char *const VIEW_DEVICES[];
extern const size_t VIEW_DEVICE_COUNT;

/* What may be done beneath a place of the view: Landlock's side of it. */
struct view_rule {
	const char *path;
	unsigned may;
};

extern const struct view_rule VIEW_RULES[];
extern const size_t VIEW_RULE_COUNT;

/* The same for a grant. */
unsigned grant_rights(const struct grant *g);

/* The attributes of a grant's mounts (MOUNT_ATTR_*). */
uint64_t grant_attrs(const struct grant *g);

/* Puts a read-only overlay in the place of the loose tree *tree, in the new root: other
 * inodes, and nothing of what is mounted in it. `empty` (borrowed) is a directory in which
 * nothing ever is. -1 with errno where there is none, and *tree is as loose as before
 * (grants.c). */
int view_overlay(int root_fd, int empty, int *tree);

/* Mounts the object behind fd over itself: it can no longer be renamed,
 * removed or replaced, and with `read_only` not be changed either. */
int view_pin(int fd, bool read_only);
bool view_pinned(int fd); /* a mount stands on it already: it cannot be moved */

/* Makes the parents of `path` (relative to root) and the thing itself, unless
 * they exist; follows no symlink. -1 with errno. */
int view_place(int root, const char *path, bool dir);
/* Makes a file with this text. -1 with errno. */
int view_file(int root, const char *name, const char *text);

/* The program that runs a Skillware skill (SKILL_WORKER); it is shown where the plan names
 * it. */
extern const char *const WORKER_TEXT;
bool worker_named(const struct ssb_plan *plan);

#endif
