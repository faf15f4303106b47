/* error.h - fill an error once, where it happened; wrap it with context. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "skillsandbox.h"

/* Fills `err` (may be NULL) unless it is filled already; always returns -1.
 * With sys_errno the text is followed by ": strerror". errno is preserved. */
int ssb_fail(struct ssb_error *err, enum ssb_code code, int sys_errno, const char *where,
             const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Puts "context: " before the text of a filled error; always returns -1. */
int ssb_wrap(struct ssb_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
