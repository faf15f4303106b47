/* config_edit.h - adds one table to a client's configuration, or removes it, and leaves every other
 * byte of the text unchanged. Reads and writes no file: it converts a text to a text.
 *
 * The file belongs to the user, so a text that is not understood with certainty is an error: JSON
 * with comments, or a table that is written in another form. */
#ifndef CLI_CONFIG_EDIT_H
#define CLI_CONFIG_EDIT_H

#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* Sets the member at `path` (names from the top, NULL at the end) of a JSON text to `value` (a
 * complete JSON value), and adds the objects that are missing above it. A NULL value removes the
 * member; objects that become empty stay. An empty text counts as an empty object. */
int config_edit_json(const char *text, size_t len, const char *const path[], const char *value,
                     struct buf *out, struct ssb_error *err);

/* Sets the whole content of the TOML table `name` to `body` (lines); NULL removes the table. A
 * table with other content is replaced only if we wrote it, which the line `mark` above its header
 * shows. A text that is not valid TOML is an error, with ":LINE" in err->where. */
int config_edit_toml(const char *text, size_t len, const char *name, const char *mark,
                     const char *body, struct buf *out, struct ssb_error *err);

/* Appends the changes from `before` to `after` as lines with "-" and "+", and one unchanged line
 * before and after each change. If too many lines differ, all lines of both texts are appended. */
void config_edit_diff(const char *before, const char *after, struct buf *out);

#endif
