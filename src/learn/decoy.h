/* decoy.h - what a learning run finds in the place of what it asks for.
 *
 * A tree of our own in the owner's state directory, which mirrors the paths that are
 * asked for: the decoy of ~/.aws/credentials lies at TOP/home/me/.aws/credentials and is
 * shown at its place. Secrets look like ones and hold a canary: a word that was never
 * written anywhere before, so that wherever it turns up a decoy was carried to. Other
 * files are empty, and what is written stays in the tree, which is removed at the end. */
#ifndef LEARN_DECOY_H
#define LEARN_DECOY_H

#include "base/buf.h"
#include "policy/options.h"

struct decoys {
	char *top; /* NULL: not begun */
	int lock;  /* of it: nobody else removes what lives */
	char canary[CANARY_BYTES];
	struct stand_in *v;
	size_t n;
};

/* What learnings left that were killed is removed first. */
int decoys_begin(const struct owner *o, struct decoys *ret, struct ssb_error *err);
void decoys_end(struct decoys *d); /* with the tree; accepts a zeroed one */

/* A stand-in for `path` (absolute), of which nothing on the host is opened but its kind.
 * *ret_new: there is one now, and was none. What is neither a secret nor there has no
 * stand-in, for nothing will be there in earnest either; nor have places that the sandbox
 * fills by itself. */
int decoys_add(struct decoys *d, const struct owner *o, const char *path, enum access access,
               bool *ret_new, struct ssb_error *err);

/* What a variable of this name could hold; false: it is none to be made up, for programs
 * and libraries are steered by it. */
bool decoy_variable(const struct decoys *d, const char *name, struct buf *out);

/* What a file of this name holds; every one has the canary in it. */
void decoy_text(struct buf *out, const char *path, const char *canary);

/* The names that one looks for in a directory of this name, ended by NULL; NULL: it is
 * no directory that is known. */
const char *const *decoy_names(const char *path);

#endif
