/* why.h - explains what a run was denied: as text for people, and completely for programs. */
#ifndef REPORT_WHY_H
#define REPORT_WHY_H

#include "base/json.h"
#include "report/overview.h"

/* Writes an array with one object for each different denial, everyday ones last, and each limit
 * that was reached. "reason" is the stable code in the record, or the name of the limit, and
 * "remedy" is the smallest change that allows the attempt ("" if there is none). */
void why_json(struct json *j, const struct overview *v);
void why_json_item(struct json *j,
                   const struct overview_item *i); /* writes the object of one denial */

/* Appends the sentence about a limit that was reached (DENIAL_LIMIT). */
void why_limit(struct buf *out, const struct overview_item *i);

/* Return the text about one denial; never NULL, never empty. */
const char *why_reason(const struct overview_item *i);
const char *why_remedy(const struct overview_item *i);

#endif
