/* fields.h - fills a struct manifest from the tree of a file. */
#ifndef MANIFEST_FIELDS_H
#define MANIFEST_FIELDS_H

#include <stdbool.h>

#include "manifest/manifest.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"

/* Fills `m` (zero except for its defaults) from the root of a file. Every finding goes to the
 * report. Returns false only if there is no memory. */
bool fields_read(const struct report *rep, const struct ynode *root, enum manifest_entry entry,
                 struct manifest *m);

#endif
