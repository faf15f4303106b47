/* unlisted.h - places that are in no table, but that a manifest gets only if the owner names them.
 *
 * These are hidden names of the home: ~/.X, and everything in ~/.config, ~/.cache and ~/.local.
 * Programs keep their settings, keys and code there, and no table knows them all. The exception is
 * ~/.cache/NAME and ~/.config/NAME for the skill's own name. A skill chooses its name itself, so
 * such a directory is its own only if no program and no place of the table has the name, and the
 * directory does not exist yet or was made by a run of this skill. A file in the owner's state
 * directory, where no skill can write, records who made it: a mark on the directory itself could be
 * forged by a skill that once had the directory. The targets of the owner's symlinks with hidden
 * names are judged like the names. For writing, the directories of the owner's PATH are judged in
 * the same way (danger_led.c).
 *
 * If root starts the run, the places also include everything that other users cannot read, by the
 * modes of the object and of all directories above it: files of root and of services. The modes of
 * the home and of the directories above it do not count: homes are often closed, and root's home is
 * judged like the home of every other user. */
#ifndef POLICY_UNLISTED_H
#define POLICY_UNLISTED_H

#include "policy/build.h"

/* The reason for a hidden place, written after its path: "~/.foo is where ...". */
#define HIDDEN_WHY "is where a program of yours keeps its settings, keys or code"

/* Returns the length of the place that belongs to one program, for a path relative to a home:
 * ".ssh", ".config/x", ".local/share/x". 0: the path is not hidden. */
size_t unlisted_length(const char *rest);
/* True if each name in the directory `rest` is a separate place: ".config", ".local/share". */
bool unlisted_is_shared(const char *rest);
/* Adds to `hits`, which must be empty, the places that `s` is, lies in or contains. `hits` may
 * borrow a place from `room`. Returns -1 with errno if the object cannot be examined. */
int unlisted_judge(struct build *b, const struct path_request *r, const struct subject *s,
                   struct danger_room *room, struct danger_hits *hits);

/* True if a directory that will be made at `path` is, or lies in, one of the skill's own places. */
bool unlisted_is_own(const struct build *b, const char *path);
/* Records in the state directory for which skill a new directory (O_PATH, borrowed) was made. If
 * that fails, or the file system stores no time of birth, the next run needs the owner's grant. */
void unlisted_mark(int fd, const char *skill_dir, const char *state_dir);

#endif
