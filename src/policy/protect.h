/* protect.h - what the host later executes or obeys.
 *
 * A skill that may write a directory must not leave code there that runs
 * outside: these names, relative to the top of a writable grant, or of
 * a repository in it, are read-only inside it unless granted by name. Those that are held (see
 * below) can also not be created; the others can. */
#ifndef POLICY_PROTECT_H
#define POLICY_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a name that does not exist yet is held by a placeholder during the
 * run. Each is visible on the host meanwhile, so only those are that tools
 * obey without being asked; shells read theirs only in a home. Where a program takes the name
 * itself for a state (git: "a rebase is under way"), a symlink to nothing holds it, which stat()
 * does not find. HOLD_PRIVATE is a directory that git writes to if it is there (after each
 * cherry-pick or revert): the skill gets a private one in its place. */
enum protect_hold { HOLD_NOT, HOLD_ANYWHERE, HOLD_IN_HOME, HOLD_BY_LINK, HOLD_PRIVATE };

struct protected_place {
	const char *name; /* relative, no leading or final slash */
	bool is_dir;      /* what to put there when it does not exist */
	enum protect_hold hold;
};

#define PROTECTED_MAX 128

extern const struct protected_place PROTECTED[];
extern const size_t PROTECTED_COUNT; /* at most PROTECTED_MAX */

/* Its name in a git directory itself: "hooks" of ".git/hooks"; NULL: it has
 * none there. */
const char *protect_in_gitdir(const struct protected_place *p);

/* How many of them are held where none exists, beside those of a home. */
size_t protect_count_held(void);

/* True if `name` (relative to a writable grant's top) is one of them or lies
 * in one: a grant of it by name is kept beside its parent's. */
bool protect_has_name(const char *name);

/* True if the path ends with one of them that is a file: made where it is missing, it is no
 * directory. */
bool protect_is_file(const char *path);

#endif
