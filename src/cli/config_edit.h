/* config_edit.h - adds one table to a client's configuration, or removes it, and leaves every other
 * byte of the file unchanged. Without side effects: text in, text out.
 *
 * The file belongs to the user, so what is not understood with certainty is an error: comments in
 * JSON, or a table that is written in another way. */
#ifndef CLI_CONFIG_EDIT_H
#define CLI_CONFIG_EDIT_H

#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* Sets the member `path` (names from the top, NULL at the end) of a JSON text to `value` (a
 * complete JSON value), and adds the objects on the way to it. A NULL value removes the member;
 * objects above it that become empty stay. An empty text is an empty object. */
int config_edit_json(const char *text, size_t len, const char *const path[], const char *value,
                     struct buf *out, struct ssb_error *err);

/* Makes `body` (lines) the whole content of the TOML table `name`; NULL removes the table. A table
 * of that name with other content is replaced only if we wrote it, which the line `mark` above it
 * says. A text that is not valid TOML is an error, with ":LINE" in err->where. */
int config_edit_toml(const char *text, size_t len, const char *name, const char *mark,
                     const char *body, struct buf *out, struct ssb_error *err);

/* Appends what changes from `before` to `after`, as lines with "-" and "+" and some lines around
 * them. */
void config_edit_diff(const char *before, const char *after, struct buf *out);

#endif
