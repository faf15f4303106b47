/* hook_nest.h - the lines of shell that a line hands to other shells: behind `sh -c`
 * and `eval`, in a here document, through a pipe from `echo`. */
#ifndef CLI_HOOK_NEST_H
#define CLI_HOOK_NEST_H

#include "cli/shell_words.h"

/* Puts the commands of each such text behind the command that gets it, joined by
 * SHELL_WITHIN, to any depth that is followed; deeper, the line is broken. `self` is our
 * executable. -1: out of memory, or past a cap; the line is then as it was. */
int hook_unfold(struct shell_line *line, const struct shell_name names[], const char *self);

#endif
