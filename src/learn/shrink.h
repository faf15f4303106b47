/* shrink.h - what a manifest declares and no recorded run used, and the patch that takes
 * it out. Pure. */
#ifndef LEARN_SHRINK_H
#define LEARN_SHRINK_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* One thing that is declared and was not used. */
struct unused {
	enum need_kind kind;
	const char *value; /* borrowed from the manifest */
	unsigned line;
	uint16_t port; /* of a rule that is used on other ports; 0: all of it */
};

struct shrink {
	struct unused *v; /* in the order of kinds, then of the manifest */
	size_t n;
	struct manifest rest; /* what remains; borrows all but its lists */
};

/* That a variable was used no record tells; one that was set in no run was not. */
int shrink_find(const struct manifest *m, const struct needs *seen, struct shrink *ret);
void shrink_done(struct shrink *s);

/* Appends a unified diff that makes of the text of `m` one of what remains; `name` stands
 * in its head, with a/ and b/ before it. The lines that stay are as they were, comments
 * included; only where the text is written in a way that cannot be cut, the whole is
 * written anew. -1 without memory. */
int shrink_patch(const struct manifest *m, const struct shrink *s, const char *name,
                 const char *text, size_t len, struct buf *out);

#endif
