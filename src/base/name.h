/* name.h - the names of public enums in JSON. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include "skillsandbox.h"

const char *name_of_end(enum ssb_end end);               /* "exited", "timeout", ... */
int name_to_end(const char *name);                       /* -1: not the name of an end */
const char *name_of_code(enum ssb_code code);            /* "usage", "policy", ... */
const char *name_of_finding(enum ssb_severity severity); /* "note", "warning", ... */

#endif
