/* protect.h - files that programs of the host later execute, or read as settings or instructions.
 *
 * A skill that may write a directory must not leave code there that later runs outside the sandbox.
 * These names, relative to the top of a writable grant or of a repository in it, are read-only in
 * the sandbox unless they are granted by name. If such a name does not exist, the skill can create
 * it, unless the run holds the name (see enum protect_hold). */
#ifndef POLICY_PROTECT_H
#define POLICY_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the run puts a placeholder at a name that does not exist, so that the skill cannot create
 * it.
 *
 * The placeholder is visible on the host during the run. So a placeholder is made only for names
 * that tools read without being asked (HOLD_ANYWHERE), and only in a home for names that shells
 * read there (HOLD_IN_HOME). HOLD_BY_LINK is for a name whose mere existence has a meaning (for
 * git: "a rebase is under way"): its placeholder is a symlink to nothing, which stat() does not
 * find. HOLD_PRIVATE is for a directory that git writes to if it exists (after each cherry-pick or
 * revert): the skill gets a private directory instead. */
enum protect_hold { HOLD_NOT, HOLD_ANYWHERE, HOLD_IN_HOME, HOLD_BY_LINK, HOLD_PRIVATE };

struct protected_place {
	const char *name; /* relative, no leading or final slash */
	bool is_dir;      /* the kind of its placeholder */
	enum protect_hold hold;
};

#define PROTECTED_MAX 128

extern const struct protected_place PROTECTED[];
extern const size_t PROTECTED_COUNT; /* at most PROTECTED_MAX */

/* Returns the place's name inside a git directory: "hooks" for ".git/hooks". NULL: the place is not
 * in a git directory. */
const char *protect_in_gitdir(const struct protected_place *p);

/* Returns the number of places with HOLD_ANYWHERE or HOLD_PRIVATE: if none of them exists, this
 * many names are held. */
size_t protect_count_held(void);

/* True if `name` (relative to the top of a writable grant) is a protected place or lies in one. A
 * grant of such a name is kept in addition to the grant that contains it. */
bool protect_has_name(const char *name);

/* True if the path ends with the name of a protected file. If the path is missing, it must be
 * created as a file, not as a directory. */
bool protect_is_file(const char *path);

#endif
