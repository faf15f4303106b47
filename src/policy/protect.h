/* protect.h - files that the host later executes or obeys.
 *
 * A skill that may write a directory must not leave code there that runs outside. These names,
 * relative to the top of a writable grant or of a repository in it, are read-only inside it
 * unless they are granted by name. Those that are held (see below) cannot be created either; the
 * others can. */
#ifndef POLICY_PROTECT_H
#define POLICY_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a placeholder holds a name that does not exist yet during the run. Each placeholder is
 * visible on the host meanwhile, so only names that tools obey without being asked are held;
 * shells read theirs only in a home. If a program takes the name itself for a state (git: "a
 * rebase is under way"), the placeholder is a symlink to nothing, which stat() does not find.
 * HOLD_PRIVATE is a directory that git writes to if it exists (after each cherry-pick or
 * revert); the skill gets a private one instead. */
enum protect_hold { HOLD_NOT, HOLD_ANYWHERE, HOLD_IN_HOME, HOLD_BY_LINK, HOLD_PRIVATE };

struct protected_place {
	const char *name; /* relative, no leading or final slash */
	bool is_dir;      /* the kind of its placeholder */
	enum protect_hold hold;
};

#define PROTECTED_MAX 128

extern const struct protected_place PROTECTED[];
extern const size_t PROTECTED_COUNT; /* at most PROTECTED_MAX */

/* Returns its name inside a git directory: "hooks" for ".git/hooks". NULL: it has none there. */
const char *protect_in_gitdir(const struct protected_place *p);

/* Returns how many of them are held if none exists, without those of a home. */
size_t protect_count_held(void);

/* True if `name` (relative to the top of a writable grant) is one of them or lies in one: a
 * grant of it by name is kept in addition to the grant of its parent. */
bool protect_has_name(const char *name);

/* True if the path ends with one of them that is a file: if it is missing, it is created as a
 * file, not as a directory. */
bool protect_is_file(const char *path);

#endif
