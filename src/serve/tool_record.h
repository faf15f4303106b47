/* tool_record.h - the arguments and results of why_denied and get_trace, for the table
 * of the tools. */
#ifndef SERVE_TOOL_RECORD_H
#define SERVE_TOOL_RECORD_H

#include "mcp/tools.h"

#define N_WHY_FIELDS   2
#define N_TRACE_FIELDS 5

extern const struct mcp_field WHY_FIELDS[N_WHY_FIELDS];
extern const struct mcp_field TRACE_FIELDS[N_TRACE_FIELDS];
extern const char WHY_SCHEMA[]; /* of the results */
extern const char TRACE_SCHEMA[];

#endif
