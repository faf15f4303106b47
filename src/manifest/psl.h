/* psl.h - public suffixes: names beneath which anyone can register a name. */
#ifndef MANIFEST_PSL_H
#define MANIFEST_PSL_H

#include <stdbool.h>

/* `name` is in A-labels, lower case, without a final dot, at most 253 bytes. */
bool psl_is_suffix(const char *name);

/* True if a public suffix lies beneath `name` (amazonaws.com: s3.amazonaws.com). */
bool psl_has_suffix_beneath(const char *name);

#endif
