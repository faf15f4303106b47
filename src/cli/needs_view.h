/* needs_view.h - needs, for people and programs; and the manifest that they are held
 * against. */
#ifndef CLI_NEEDS_VIEW_H
#define CLI_NEEDS_VIEW_H

#include "base/json.h"
#include "learn/needs.h"
#include "skill/skill.h"

/* "  read ~/notes/a  (run 0a1b2c3d, 3 times)", and why it is dangerous, where it is. */
void needs_view_line(struct buf *out, const struct need *n);
void needs_view_json(struct json *j, const struct need *n);

/* The manifest of a skill's directory, of any format, or that of a file. */
int needs_skill(const struct owner *o, const char *path, struct skill_found *ret,
                struct ssb_error *err);

#endif
