/* psl.h - public suffixes: names beneath which anyone can register a name. */
#ifndef MANIFEST_PSL_H
#define MANIFEST_PSL_H

#include <stdbool.h>

/* True if `name` is a public suffix. It must be in A-labels, lower case, without a final dot, and
 * have at most 253 bytes. */
bool psl_is_suffix(const char *name);

/* True if a public suffix lies beneath `name` (amazonaws.com: s3.amazonaws.com). */
bool psl_has_suffix_beneath(const char *name);

#endif
