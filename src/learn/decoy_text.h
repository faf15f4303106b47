/* decoy_text.h - how secrets look that are none. Pure. */
#ifndef LEARN_DECOY_TEXT_H
#define LEARN_DECOY_TEXT_H

#include "base/buf.h"

/* What a file of this name holds; every one has the canary in it. */
void decoy_text(struct buf *out, const char *path, const char *canary);

/* The names that one looks for in a directory of this name, ended by NULL; NULL: it is
 * no directory that is known. */
const char *const *decoy_names(const char *path);

#endif
