/* start.h - finds or makes the manifest from which a proposal starts. */
#ifndef LEARN_START_H
#define LEARN_START_H

#include "learn/needs.h"
#include "skill/skill.h"

/* Like skill_find(). If the directory is not a skill yet, makes a manifest that asks for nothing.
 * Its script is the first of `args`, one with a usual name, or the only one. The variables of a
 * derived manifest are moved to `inout`, so that they are judged like all other needs. */
int start_find(const char *dir, const char *config_dir, char *const args[], struct needs *inout,
               struct skill_found *ret, struct ssb_diags *diags, struct ssb_error *err);

#endif
