/* remember.h - the grants that an owner adds to a skill's approval (skillsandbox allow), in the
 * form in which an approval stores them.
 *
 * They are collected in the `allowed` of a lock that is otherwise empty. */
#ifndef CLI_REMEMBER_H
#define CLI_REMEMBER_H

#include "base/buf.h"
#include "consent/lock.h"
#include "report/overview.h"

/* Adds one grant to fresh->allowed. The value may come from a person or from a skill. Paths are
 * resolved, and hosts get their usual form, so that equal grants have equal values. */
int remember_add(const struct owner *o, const struct given *g, struct lock *fresh,
                 struct ssb_error *err);
/* Adds what was denied in a run, if an approval can remember it. Writes a line about each other
 * denial to `why` (may be NULL). Returns -1 if there is no memory. */
int remember_denied(const struct owner *o, const struct overview *v, const char *run_id,
                    struct lock *fresh, struct buf *why);
/* Removes from fresh->allowed each grant that no approval can give to the skill in `dir`, and
 * writes a line about it to `why` (may be NULL). `options` may be NULL. */
int remember_judge(const struct owner *o, const struct ssb_options *options, const char *dir,
                   struct lock *fresh, struct buf *why, struct ssb_error *err);

#endif
