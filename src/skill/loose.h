/* loose.h - YAML as people write it, as far as it can be understood. Pure.
 *
 * One in fifty of all SKILL.md files is not valid YAML. Unreadable parts are left out with a
 * warning and are never an error: what is left out asks for nothing. The tree is that of
 * manifest/yaml_doc.h. */
#ifndef SKILL_LOOSE_H
#define SKILL_LOOSE_H

#include "manifest/yaml_doc.h"

/* Returns the mapping in the text, new (yaml_doc_free); an empty one if there is none; NULL
 * without memory. `line` is the line of `file` where the text begins. If the text as a whole is
 * not valid, each entry of the top level is read by itself. */
struct ynode *loose_read(const char *file, const char *text, size_t len, unsigned line,
                         struct ssb_diags *diags);

/* Returns the value at "a.b.c", or NULL. A text on the way that contains JSON is parsed and
 * becomes part of the tree. */
struct ynode *loose_at(struct ynode *map, const char *path);

#endif
