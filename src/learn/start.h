/* start.h - the manifest from which a proposal starts. */
#ifndef LEARN_START_H
#define LEARN_START_H

#include "learn/needs.h"
#include "skill/skill.h"

/* Like skill_find(). If the directory is not a skill yet, makes a manifest that asks for nothing,
 * with the script that `args` name first or one with an obvious name. What a derived manifest would
 * like from the environment is moved from the manifest to `inout`, to be judged like all other
 * needs. */
int start_find(const char *dir, const char *config_dir, char *const args[], struct needs *inout,
               struct skill_found *ret, struct ssb_diags *diags, struct ssb_error *err);

#endif
