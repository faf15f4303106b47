/* repos_known.h - the repositories that earlier runs found in writable grants.
 *
 * A search is bounded, and a skill can make so many names in one run that the next run no longer
 * reaches the owner's repositories. So repositories that were found once are visited first. The
 * list is a file in the owner's state directory, which no grant shows. */
#ifndef SANDBOX_REPOS_KNOWN_H
#define SANDBOX_REPOS_KNOWN_H

#include "base/string_list.h"
#include "skillsandbox.h"

/* Adds to `ret` the absolute paths in the file, the oldest first; none if the file is missing.
 * Returns -1 if the file cannot be read, or if another user can write it and its content cannot be
 * trusted. */
int repos_known_load(const char *state_dir, struct string_list *ret, struct ssb_error *err);

/* Adds to the file the paths that it lacks. If the file is full, paths that no longer exist are
 * removed from it. Errors are ignored: the next search may find the repository again. */
void repos_known_add(const char *state_dir, const struct string_list *paths);

#endif
