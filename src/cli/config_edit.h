/* config_edit.h - adds a member to a configuration in JSON, or removes it, and shows changes. Reads
 * and writes no file. */
#ifndef CLI_CONFIG_EDIT_H
#define CLI_CONFIG_EDIT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "skillsandbox.h"

/* Writes the configuration with the member at `path` (names from the top, NULL at the end) set to
 * `value` (a complete JSON value), and adds the objects that are missing above it. If `value` is
 * NULL, the member is removed; objects that become empty stay. Every other member keeps its value
 * and its place. An empty `doc` counts as an empty object. */
int config_edit_set(const struct json_doc *doc, const char *const path[], const char *value,
                    struct buf *out, struct ssb_error *err);

/* Appends the changes from `before` to `after` as lines with "-" and "+", and one unchanged line
 * before and after each change. If too many lines differ, all lines of both texts are appended. */
void config_edit_diff(const char *before, const char *after, struct buf *out);

#endif
