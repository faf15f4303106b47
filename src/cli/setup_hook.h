/* setup_hook.h - the entry in the settings of Claude Code that lets it ask our hook before it runs
 * a command. */
#ifndef CLI_SETUP_HOOK_H
#define CLI_SETUP_HOOK_H

#include <stdbool.h>

#include "cli/setup_client.h"
#include "cli/setup_file.h"

/* Reads the client's settings and makes the new text, in which the hook is present, or absent if
 * `removing`. `program` is the path of this program. *ret_done is true if nothing has to change. */
int setup_hook_plan(struct setup_file *f, const struct setup_client *c, bool project,
                    const char *program, bool removing, bool *ret_done, struct ssb_error *err);

#endif
