/* owner.h - the user who runs the program, found from the credentials and the environment of the
 * process. A name service is asked only if HOME is not usable. */
#ifndef POLICY_OWNER_H
#define POLICY_OWNER_H

#include "base/buf.h"
#include "policy/plan.h"

/* Fills `ret`, which the caller must pass to owner_done(). The home is $HOME if that is an absolute
 * path of a directory; otherwise the home of the passwd entry. Its symlinks are resolved, so that
 * paths beneath it can be compared by name. */
int owner_load(struct owner *ret, struct ssb_error *err);
void owner_done(struct owner *o); /* accepts a zeroed one */

/* Returns the value of a variable of owner->environ; NULL if absent. */
const char *owner_getenv(const struct owner *o, const char *name);
/* Returns whether the caller can execute the file. */
bool owner_is_program(const char *path);
/* Finds a program as the caller's shell would: by its absolute path, or by its name in PATH. The
 * result is its path (new); NULL: there is none. */
char *owner_find_program(const struct owner *o, const char *name);

/* Checks an open file (borrowed) that carries the owner's decisions: it must be regular, belong
 * to the owner or root, and be writable for no other user. `what` is "policy file", `file` its
 * name. */
int owner_file_check(const struct owner *o, int fd, const char *what, const char *file,
                     struct ssb_error *err);

/* Opens such a file, checks it and appends its bytes. Returns 0; 1 if it does not exist; or -1. */
int owner_file_read(const struct owner *o, const char *what, const char *file, struct buf *out,
                    struct ssb_error *err);

#endif
