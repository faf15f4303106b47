/* report.h - findings of one file: position, quoting, "did you mean". */
#ifndef MANIFEST_REPORT_H
#define MANIFEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct report {
	const char *file;        /* as named to the user; borrowed */
	struct ssb_diags *diags; /* borrowed, may be NULL */
};

#define WHERE_SIZE sizeof(((struct ssb_error *)0)->where)
#define QUOTE_SIZE 96

/* "file:line:column", or "file" for line 0. A long file name loses its
 * beginning, never the position. */
void report_where(char *ret, size_t size, const char *file, unsigned line, unsigned col);

void report_add(const struct report *r, enum ssb_severity severity, unsigned line, unsigned col,
                const char *remedy, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* `s` in quotes, cut to fit, line breaks and unprintable bytes escaped; a text
 * from a manifest goes to a terminal only through here. Returns `ret`. */
const char *report_quote(char ret[QUOTE_SIZE], const char *s);

/* suggest() of base, blind to upper case and to "-" for "_". */
const char *report_nearest(const char *s, const char *const *words, size_t n, size_t stride);

/* Hands the findings of one file to the caller's list (may be NULL), and the
 * first error, with this code, to `err`. Returns whether there was none. */
bool report_deliver(const struct ssb_diags *found, enum ssb_code code, const char *file,
                    struct ssb_diags *diags, struct ssb_error *err);

#endif
