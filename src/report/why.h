/* why.h - what a run was denied: in words for people, and complete for programs. */
#ifndef REPORT_WHY_H
#define REPORT_WHY_H

#include "base/json.h"
#include "report/overview.h"

/* Writes an array with an object for each different denial: "reason" is the stable code of the
 * records, "remedy" the smallest change that allows it ("": there is none). */
void why_json(struct json *j, const struct overview *v);
void why_json_item(struct json *j, const struct overview_item *i); /* one of them */

/* Words for one denial; never NULL, never empty. */
const char *why_reason(const struct overview_item *i);
const char *why_remedy(const struct overview_item *i);

#endif
