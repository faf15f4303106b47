/* config_edit.h - puts one table into a client's configuration, or takes it out,
 * and leaves every other byte of the file as it is. Pure: text in, text out.
 *
 * What is not understood with certainty (comments in JSON, a table that is written
 * in another way) is refused: the file is the user's. */
#ifndef CLI_CONFIG_EDIT_H
#define CLI_CONFIG_EDIT_H

#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* Makes the member `path` (names from the top, NULL at the end) of a JSON text
 * `value` (a finished JSON value), with the objects on the way to it. A NULL value
 * takes it out, and what is left empty above it stays. An empty text is an empty
 * object. */
int config_json(const char *text, size_t len, const char *const path[], const char *value,
                struct buf *out, struct ssb_error *err);

/* Makes `body` (lines) the whole content of the TOML table `name`; NULL takes the
 * table out. A table of that name with other content is replaced only if it was
 * written by us, which the line `mark` above it says. What is not valid TOML is refused,
 * with ":LINE" in err->where. */
int config_toml(const char *text, size_t len, const char *name, const char *mark, const char *body,
                struct buf *out, struct ssb_error *err);

/* What changes from `before` to `after`, as lines with "-" and "+" and some around
 * them. */
void config_diff(const char *before, const char *after, struct buf *out);

#endif
