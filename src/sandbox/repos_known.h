/* repos_known.h - the repositories that earlier runs found in writable grants.
 *
 * A search has its bounds, and a skill can make so many names in one run that the next does
 * not come to the owner's repositories any more. What was found once is looked at first. The
 * file of them is the owner's, in the state directory, which no grant shows. */
#ifndef SANDBOX_REPOS_KNOWN_H
#define SANDBOX_REPOS_KNOWN_H

#include "base/string_list.h"
#include "skillsandbox.h"

/* Absolute paths, the oldest first; none where the file is missing. -1 where it cannot be read
 * or others can write it: what it keeps would be searched for in vain. */
int repos_known_load(const char *state_dir, struct string_list *ret, struct ssb_error *err);

/* Keeps the paths that are not among those in the file; where that is full, those that are
 * gone make room. What cannot be kept is found again, or not: no run fails for it. */
void repos_known_add(const char *state_dir, const struct string_list *paths);

#endif
