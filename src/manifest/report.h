/* report.h - findings about one file, with their position. */
#ifndef MANIFEST_REPORT_H
#define MANIFEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct report {
	const char *file;        /* as the user wrote it; borrowed */
	struct ssb_diags *diags; /* borrowed, may be NULL */
};

#define WHERE_SIZE sizeof(((struct ssb_error *)0)->where)
#define QUOTE_SIZE 96

/* Writes "file:line:column", or "file" if `line` is 0. A long file name loses its beginning; the
 * position is always complete. */
void report_where(char *ret, size_t size, const char *file, unsigned line, unsigned col);

void report_add(const struct report *r, enum ssb_severity severity, unsigned line, unsigned col,
                const char *remedy, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Writes `s` in quotes, cut to fit, with line breaks and unprintable bytes escaped, and
 * returns `ret`. A text from a manifest goes to a terminal only through this function. */
const char *report_quote(char ret[QUOTE_SIZE], const char *s);

/* Like suggest(), but ignores case and treats "-" and "_" as equal. */
const char *report_nearest(const char *s, const char *const *words, size_t n, size_t stride);

/* Appends `found`, the findings about one file, to the caller's list `diags` (may be NULL), and
 * writes the first error with this code to `err`. Returns true if there was no error. */
bool report_deliver(const struct ssb_diags *found, enum ssb_code code, const char *file,
                    struct ssb_diags *diags, struct ssb_error *err);

#endif
