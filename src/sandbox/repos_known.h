/* repos_known.h - the repositories that earlier runs found in writable grants.
 *
 * A search is bounded, and a skill can make so many names in one run that the next run no
 * longer reaches the owner's repositories. So those that were found once are visited first.
 * The file that lists them is the owner's, in the state directory, which no grant shows. */
#ifndef SANDBOX_REPOS_KNOWN_H
#define SANDBOX_REPOS_KNOWN_H

#include "base/string_list.h"
#include "skillsandbox.h"

/* Loads absolute paths, the oldest first; none if the file is missing. Returns -1 if it
 * cannot be read or others can write it, because its content could not be trusted then. */
int repos_known_load(const char *state_dir, struct string_list *ret, struct ssb_error *err);

/* Adds the paths that the file lacks. If the file is full, paths that no longer exist make
 * room. Errors are ignored: the next search may find the repository again. */
void repos_known_add(const char *state_dir, const struct string_list *paths);

#endif
