/* propose.h - the smallest manifest that covers what is needed, as text: each line with
 * its reason, and what is dangerous, or not there to be read, as a comment alone. Pure. */
#ifndef LEARN_PROPOSE_H
#define LEARN_PROPOSE_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* Appends the text, which manifest_parse() takes. `base` gives name, version,
 * description, entrypoint, limits, and what it declares already: all of it is kept, and
 * what it covers is not said twice. `head` (may be NULL) are the first lines of the
 * file. -1 without memory, and where it is more than a manifest can be. */
int propose_manifest(const struct manifest *base, const struct needs *n, const char *head,
                     struct buf *out);

/* Which of the needs would a manifest not cover? Their indices (*ret is new). Whether
 * the owner would grant what it declares is not asked. */
int propose_uncovered(const struct manifest *m, const struct needs *n, size_t **ret, size_t *ret_n);

/* Is it this line of the manifest that covers the need? The parts of the above. `home`:
 * what "~" is; NULL where it is not known. */
bool cover_rule(const struct egress_rule *r, const struct need *n);
bool cover_path(const char *declared, const char *home, const struct need *n);
bool cover_manifest(const struct manifest *m, const char *home, const struct need *n);

#endif
