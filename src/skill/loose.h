/* loose.h - YAML as people write it, as far as it can be understood. Pure.
 *
 * Of all the SKILL.md there are, one in fifty is not valid YAML. What cannot be read is
 * left out with a warning, and never an error: it is not there, so that it asks for
 * nothing. The tree is that of manifest/yaml_doc.h. */
#ifndef SKILL_LOOSE_H
#define SKILL_LOOSE_H

#include "manifest/yaml_doc.h"

/* The mapping that the text holds, new (yaml_doc_free); an empty one where there is none.
 * NULL: without memory. `line` is the text's first in `file`. Where the whole is not
 * valid, each entry of the top level is read by itself. */
struct ynode *loose_read(const char *file, const char *text, size_t len, unsigned line,
                         struct ssb_diags *diags);

/* The value at "a.b.c", or NULL. A text that holds JSON is read on the way, and becomes
 * part of the tree. */
struct ynode *loose_at(struct ynode *map, const char *path);

#endif
