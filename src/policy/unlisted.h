/* unlisted.h - places that a manifest gets by the owner's word alone, and that no table lists.
 *
 * Hidden names of the home: ~/.X, and all in ~/.config, ~/.cache and ~/.local. Programs keep
 * their settings, keys and code there, and no table knows them all. Excepted are ~/.cache/NAME and
 * ~/.config/NAME of the skill's own name. A skill chooses its name itself: such a directory is its
 * own only where no program and no place of the table has the name, and where it is not there yet,
 * or was made by a run of this skill. A file in the owner's state directory keeps that, where no
 * skill can write: one that had a directory once could forge a mark on the directory itself. What
 * the owner's symlinks of such names lead to is judged like the names, and so is what is in the
 * owner's PATH, to be written (danger_led.c).
 *
 * Started by root, what others cannot read, by the modes on the whole way: root's and the services'
 * own. The modes of the home and above it do not count: homes are often closed, and what is in
 * one is judged as every user's is. */
#ifndef POLICY_UNLISTED_H
#define POLICY_UNLISTED_H

#include "policy/build.h"

/* Completes "PATH ...". */
#define HIDDEN_WHY "is where a program of yours keeps its settings, keys or code"

/* Of a path from a home on, the length of the place that belongs to one program: ".ssh",
 * ".config/x", ".local/share/x". 0: it is not hidden. */
size_t unlisted_length(const char *rest);
/* `rest` is a directory in which each name is a place of its own: ".config", ".local/share". */
bool unlisted_is_shared(const char *rest);
/* The places that `s` is, lies in or holds are added to `hits`, which are empty; one may be
 * borrowed from `room`. -1 with errno: it cannot be examined. */
int unlisted_judge(struct build *b, const struct path_request *r, const struct subject *s,
                   struct danger_room *room, struct danger_hits *hits);

/* The directory that will be made at `path` is, or lies in, one of the skill's own. */
bool unlisted_is_own(const struct build *b, const char *path);
/* Keeps in the state directory for which skill a new directory (O_PATH, borrowed) was made. If that
 * fails, or the file system keeps no time of birth, the owner is asked the next time. */
void unlisted_mark(int fd, const char *skill_dir, const char *state_dir);

#endif
