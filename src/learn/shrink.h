/* shrink.h - what a manifest declares and no recorded run used, and the patch that removes it.
 * Pure. */
#ifndef LEARN_SHRINK_H
#define LEARN_SHRINK_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* One declared thing that was not used. */
struct unused {
	enum need_kind kind;
	const char *value; /* borrowed from the manifest */
	unsigned line;
	uint16_t port; /* unused port of a rule that is used on other ports; 0: the whole rule */
};

struct shrink {
	struct unused *v; /* sorted by kind, then in the order of the manifest */
	size_t n;
	struct manifest rest; /* what remains; borrows everything except its lists */
};

/* Finds what was not used. Records do not show whether a variable was used; one that was not set in
 * any run was not. The caller must pass *ret to shrink_done(). -1: out of memory. */
int shrink_find(const struct manifest *m, const struct needs *seen, struct shrink *ret);
void shrink_done(struct shrink *s);

/* Appends a unified diff that changes the text of `m` to that of what remains. Its head has `name`
 * with a/ and b/ before it. Lines that stay are unchanged, comments included; only a text that
 * cannot be cut is replaced as a whole. -1: out of memory. */
int shrink_patch(const struct manifest *m, const struct shrink *s, const char *name,
                 const char *text, size_t len, struct buf *out);

#endif
