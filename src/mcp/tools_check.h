/* tools_check.h - checks the arguments of a tools/call against the rows of its tool. */
#ifndef MCP_TOOLS_CHECK_H
#define MCP_TOOLS_CHECK_H

#include "mcp/tools.h"

/* Writes every problem with `args` (an object; NULL: none) as the members "message", "fix"
 * and "problems" of the object that is open in `j`. Returns the number of problems; writes
 * nothing if it is 0. Only the first MAX_MCP_PROBLEMS are written, the rest are counted. */
size_t tools_check_arguments(const struct mcp_tool *t, const struct json_doc *doc,
                             const struct json_node *args, struct json *j);

/* Accepts 5.0, too: to JSON Schema it is an integer. */
int tools_integer(const struct json_node *node, int64_t *ret);

/* A name that another program wrote, shortened and reduced to printable ASCII, so that a
 * terminal or a model cannot take it for more than a name. Returns `out`. */
#define TOOLS_NAME_ROOM 48
const char *tools_plain_name(const char *name, char out[TOOLS_NAME_ROOM]);

#define TOOLS_MAX_INTEGER 9007199254740991 /* 2^53 - 1: every JSON reader keeps it exactly */

#endif
