/* name.h - the names of public enums in JSON, and the search for a name in any table. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stddef.h>

#include "skillsandbox.h"

const char *name_of_end(enum ssb_end end);               /* "exited", "timeout", ... */
int name_to_end(const char *name);                       /* -1: not the name of an end */
const char *name_of_code(enum ssb_code code);            /* "usage", "policy", ... */
const char *name_of_finding(enum ssb_severity severity); /* "note", "warning", ... */

/* Returns the index of `name` among `n` names; `n` if it is not there, or NULL. `stride` is as in
 * suggest.h. No name may be NULL. */
size_t name_index(const char *name, const char *const *names, size_t n, size_t stride);

#endif
