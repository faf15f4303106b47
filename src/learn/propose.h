/* propose.h - writes the smallest manifest that covers the needs, as text. Each line has its
 * reason. A need that is dangerous, or whose path does not exist, is only a comment. Pure. */
#ifndef LEARN_PROPOSE_H
#define LEARN_PROPOSE_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* Appends a text that manifest_parse() accepts. Everything in `base` is kept (name, version,
 * description, entrypoint, limits, declarations), and needs that `base` covers are not added
 * again. `head` (may be NULL) becomes the first lines of the file. -1: out of memory, or more
 * than a manifest can contain. */
int propose_manifest(const struct manifest *base, const struct needs *n, const char *head,
                     struct buf *out);

/* Returns the indices of the needs that a manifest does not cover; *ret is new. It does not matter
 * whether the owner would grant the manifest's requests. */
int propose_uncovered(const struct manifest *m, const struct needs *n, size_t **ret, size_t *ret_n);

/* Returns true if this line of a manifest covers the need. `home` is the path that "~" means; NULL:
 * not known. */
bool cover_rule(const struct egress_rule *r, const struct need *n);
bool cover_path(const char *declared, const char *home, const struct need *n);
bool cover_manifest(const struct manifest *m, const char *home, const struct need *n);

#endif
