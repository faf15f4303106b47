/* plan_rows.h - the plan of a recorded run as rows for people: what was granted, and by what. */
#ifndef REPORT_PLAN_ROWS_H
#define REPORT_PLAN_ROWS_H

#include "trace/reader.h"

/* Takes one row. The label is a text of this program; `text` is escaped, but not for HTML. */
typedef void plan_row_fn(void *arg, const char *label, const char *text);

/* Returns the plan in the line `run`; NULL: the plan was too large for the record. */
const struct json_node *plan_rows_plan(const struct line *run);
/* Calls `put` for each row. */
void plan_rows(const struct line *run, plan_row_fn *put, void *arg);

#endif
