/* owner.h - the person who runs us, from the process's own credentials and
 * environment; no name service is asked on the usual way. */
#ifndef POLICY_OWNER_H
#define POLICY_OWNER_H

#include "policy/plan.h"

/* Fills `ret` (done with owner_done). The home is $HOME where that is an
 * absolute path of a directory, else the passwd entry's; symlinks in it are
 * resolved, so that what lies beneath can be compared by name. */
int owner_load(struct owner *ret, struct ssb_error *err);
void owner_done(struct owner *o); /* accepts a zeroed one */

/* Value of a variable of owner->environ; NULL if absent. */
const char *owner_getenv(const struct owner *o, const char *name);

/* An open file (borrowed) by which the owner decides: regular, the owner's or
 * root's, and nobody else may write it. `what` is "policy file", `file` its name. */
int owner_file_check(const struct owner *o, int fd, const char *what, const char *file,
                     struct ssb_error *err);

#endif
