/* needs_view.h - prints needs for people and programs, and loads the manifest that needs are
 * compared with. */
#ifndef CLI_NEEDS_VIEW_H
#define CLI_NEEDS_VIEW_H

#include "base/json.h"
#include "learn/needs.h"
#include "skill/skill.h"

/* Appends "  read ~/notes/a  (run 0a1b2c3d, 3 times)" and, if the need is dangerous, the reason. */
void needs_view_line(struct buf *out, const struct need *n);
void needs_view_json(struct json *j, const struct need *n);

/* Loads a manifest of any format: from a file, or from the directory of a skill. */
int needs_skill(const struct owner *o, const char *path, struct skill_found *ret,
                struct ssb_error *err);

#endif
