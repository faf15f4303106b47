/* config_yaml.h - adds a member to a configuration in YAML, replaces it, or removes it. The lines
 * of everything else, and the comments, stay as they are. Reads and writes no file. */
#ifndef CLI_CONFIG_YAML_H
#define CLI_CONFIG_YAML_H

#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* Writes the document as JSON. Plain scalars become strings, except booleans and null, which keep
 * their type. */
int config_yaml_to_json(const char *text, size_t len, struct buf *out, struct ssb_error *err);

/* Writes the text, in which the member names[1] of the mapping names[0] is set to `value`. `value`
 * is an object in JSON; each of its members becomes one line. If `value` is NULL, the member is
 * removed. Fails if the mapping is not in block style with one member on each line. */
int config_yaml_set(const struct buf *text, const char *const names[], const char *value,
                    struct buf *out, struct ssb_error *err);

#endif
