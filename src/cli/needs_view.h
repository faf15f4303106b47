/* needs_view.h - shows needs to people and programs, and finds the manifest that they are compared
 * with. */
#ifndef CLI_NEEDS_VIEW_H
#define CLI_NEEDS_VIEW_H

#include "base/json.h"
#include "learn/needs.h"
#include "skill/skill.h"

/* "  read ~/notes/a  (run 0a1b2c3d, 3 times)", and why it is dangerous if it is. */
void needs_view_line(struct buf *out, const struct need *n);
void needs_view_json(struct json *j, const struct need *n);

/* Loads the manifest in the directory of a skill, of any format, or in a file. */
int needs_skill(const struct owner *o, const char *path, struct skill_found *ret,
                struct ssb_error *err);

#endif
