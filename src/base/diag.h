/* diag.h - the list of findings behind `struct ssb_diags`. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdbool.h>

#include "skillsandbox.h"

/* Copies the three texts. Accepts d == NULL. After MAX_DIAGS findings the last entry says that
 * there are more; alarms and errors then replace findings that matter less. Never fails: without
 * memory the count still grows, so that no error is lost. */
void diag_add(struct ssb_diags *d, enum ssb_severity severity, const char *where,
              const char *remedy, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

bool diag_has_errors(const struct ssb_diags *d); /* counts findings that were not kept, too */

/* For AUTO(). */
static inline void diags_freep(struct ssb_diags **d)
{
	ssb_diags_free(*d);
}

#endif
