/* names.h - the words that stand for the public enums in JSON. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "skillsandbox.h"

const char *end_name(enum ssb_end end);               /* "exited", "timeout", ... */
const char *code_name(enum ssb_code code);            /* "usage", "policy", ... */
const char *finding_name(enum ssb_severity severity); /* "note", "warning", ... */

#endif
