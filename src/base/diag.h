/* diag.h - the list of findings behind `struct ssb_diags`. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdbool.h>

#include "base/own.h"
#include "skillsandbox.h"

/* Copies the three texts. Accepts d == NULL. If there are more than MAX_DIAGS findings, the last
 * entry says so, and alarms and errors replace less severe findings. Never fails: without memory
 * the finding is lost, but an error is still counted. */
void diag_add(struct ssb_diags *d, enum ssb_severity severity, const char *where,
              const char *remedy, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

bool diag_has_errors(const struct ssb_diags *d); /* also counts findings that were not stored */

OWN_FREEP(diags_freep, struct ssb_diags, ssb_diags_free)

#endif
