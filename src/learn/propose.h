/* propose.h - the smallest manifest that covers what is needed, as text: each line with
 * its reason, and what is dangerous as a comment alone. Pure. */
#ifndef LEARN_PROPOSE_H
#define LEARN_PROPOSE_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* `base` gives name, version, description, entrypoint, limits, and what it declares
 * already; it is kept. NULL paths of needs that `base` covers are not said twice. */
int propose_manifest(const struct manifest *base, const struct needs *n, struct buf *out);

/* Which of the needs would a manifest not cover? Appends their indices to *ret (new). */
int propose_uncovered(const struct manifest *m, const struct needs *n, size_t **ret, size_t *ret_n);

#endif
