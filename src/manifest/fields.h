/* fields.h - turns the tree of a file into a struct manifest. */
#ifndef MANIFEST_FIELDS_H
#define MANIFEST_FIELDS_H

#include <stdbool.h>

#include "manifest/manifest.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"

/* Fills `m` (zero except for its defaults) from the root of a file; every finding goes to
 * the report. Returns false only without memory. */
bool fields_read(const struct report *rep, const struct ynode *root, struct manifest *m);

#endif
