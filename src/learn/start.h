/* start.h - the manifest that a proposal begins with. */
#ifndef LEARN_START_H
#define LEARN_START_H

#include "learn/needs.h"
#include "skill/skill.h"

/* As skill_find() has it; where a directory is no skill yet, a manifest that asks for
 * nothing, with the script that `args` name first, or one by an obvious name. What a
 * derived manifest wishes of the environment goes to `inout`, to be judged like all
 * else, and is taken out of the manifest. */
int start_find(const char *dir, const char *config_dir, char *const args[], struct needs *inout,
               struct skill_found *ret, struct ssb_diags *diags, struct ssb_error *err);

#endif
