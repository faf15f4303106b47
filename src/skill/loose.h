/* loose.h - reads YAML as people write it, even if it is not quite valid. No I/O.
 *
 * One in fifty of all SKILL.md files is not valid YAML. Parts that cannot be read are left out with
 * a warning. They are never an error, because a part that is left out asks for nothing. The result
 * is a tree of manifest/yaml_doc.h. */
#ifndef SKILL_LOOSE_H
#define SKILL_LOOSE_H

#include "manifest/yaml_doc.h"

/* Returns the mapping in the text, which must be freed with yaml_doc_free(). The mapping is empty
 * if the text has none. Returns NULL if there is no memory. `line` is the line of `file` where the
 * text begins. If the text as a whole is not valid, each entry of the top level is read
 * separately. */
struct ynode *loose_read(const char *file, const char *text, size_t len, unsigned line,
                         struct ssb_diags *diags);

/* Returns the value (borrowed) at `path`, such as "a.b.c", in `map`, or NULL. If a value on the way
 * is a text with JSON in it, the text is parsed and becomes part of the tree. */
struct ynode *loose_at(struct ynode *map, const char *path);

#endif
