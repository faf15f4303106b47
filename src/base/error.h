/* error.h - the function that fails fills the error once; its callers add context. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "skillsandbox.h"

/* Fills `err` (may be NULL) unless it is filled already. Always returns -1. If sys_errno is not 0,
 * ": strerror" is appended to the text. errno is preserved. */
int ssb_fail(struct ssb_error *err, enum ssb_code code, int sys_errno, const char *where,
             const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Puts "context: " before the text of a filled error. Always returns -1. */
int ssb_wrap(struct ssb_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
