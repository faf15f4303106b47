/* shrink.h - finds declarations of a manifest that no recorded run used, and writes the patch that
 * removes them. Pure. */
#ifndef LEARN_SHRINK_H
#define LEARN_SHRINK_H

#include "base/buf.h"
#include "learn/needs.h"
#include "manifest/manifest.h"

/* One declaration that was not used. */
struct unused {
	enum need_kind kind;
	const char *value; /* borrowed from the manifest */
	unsigned line;
	uint16_t port; /* an unused port of a rule that is otherwise used; 0: the whole rule */
};

struct shrink {
	struct unused *v; /* sorted by kind, then in the order of the manifest */
	size_t n;
	struct manifest rest; /* the manifest without `v`; owns only its lists, borrows the rest */
};

/* Finds the declarations that were not used. Records do not show whether a variable was used, so a
 * variable is unused only if it was not set in any run. The caller must pass *ret to shrink_done().
 * Returns -1 if out of memory. */
int shrink_find(const struct manifest *m, const struct needs *seen, struct shrink *ret);
void shrink_done(struct shrink *s);

/* Appends a unified diff that removes the unused declarations from the text of `m`. Its head has
 * `name` with a/ and b/ before it. All other lines are unchanged, including comments. Only if the
 * text cannot be cut, the whole text is replaced. Returns -1 if out of memory. */
int shrink_patch(const struct manifest *m, const struct shrink *s, const char *name,
                 const char *text, size_t len, struct buf *out);

#endif
