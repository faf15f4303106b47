/* decoy.h - makes decoys: in a learning run, the skill gets them instead of the files and variables
 * that it asks for.
 *
 * The decoys are a tree in the owner's state directory, which has the same paths that the
 * skill asks for: the decoy of ~/.aws/credentials is TOP/home/me/.aws/credentials, and the
 * sandbox shows it at ~/.aws/credentials. A decoy of a secret looks like a secret and contains
 * a canary: a random word that exists nowhere else. If the canary appears somewhere, a decoy
 * was sent there. Other decoys are empty files. What the skill writes stays in the tree, which
 * is removed at the end. */
#ifndef LEARN_DECOY_H
#define LEARN_DECOY_H

#include "base/buf.h"
#include "policy/options.h"

struct decoys {
	char *top; /* NULL: decoys_begin() was not called */
	int lock;  /* locks `top`, so that no other process removes it */
	char canary[CANARY_BYTES];
	struct stand_in *v;
	size_t n;
};

/* Makes the tree. Trees of learning runs that were killed are removed first. */
int decoys_begin(const struct owner *o, struct decoys *ret, struct ssb_error *err);
void decoys_end(struct decoys *d); /* removes the tree; accepts zero */

/* Makes a stand-in for `path`, which must be absolute. Opens nothing on the host, and only looks up
 * the kind of the file. *ret_new is true if a stand-in was added. A path that is not a secret and
 * does not exist gets none, because a real run would find nothing there either. A place that the
 * sandbox fills itself gets none either. */
int decoys_add(struct decoys *d, const struct owner *o, const char *path, enum access access,
               bool *ret_new, struct ssb_error *err);

/* Makes an empty directory for `target`, which is absolute and does not exist; the skill may write
 * in it. */
int decoys_add_place(struct decoys *d, const struct owner *o, const char *target,
                     struct ssb_error *err);
/* Returns true if `path` is a file that exists only in the decoy of a directory. Such a file has
 * the name "decoy", with the ending of a file of the real directory, so that patterns find it. */
bool decoys_is_sample(const struct decoys *d, const char *path);
/* Returns true if the text contains what was in a decoy. The made-up values of variables do not
 * count: many programs print them, for example in an error message. */
bool decoys_shown(const struct decoys *d, const char *text, size_t len);

/* Writes a value that a variable of this name could have. Returns false if the variable controls
 * programs and libraries: then no value is made up. */
bool decoy_variable(const struct decoys *d, const char *name, struct buf *out);

/* Writes a content that a file of this name could have. The content always contains the canary. */
void decoy_text(struct buf *out, const char *path, const char *canary);

/* Returns the names that programs look for in a directory of this name, with a NULL at the end.
 * NULL: the directory is not known. */
const char *const *decoy_names(const char *path);

#endif
