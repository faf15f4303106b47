/* tools_check.h - checks the arguments of a tools/call against the rows of its tool. */
#ifndef MCP_TOOLS_CHECK_H
#define MCP_TOOLS_CHECK_H

#include "mcp/tools.h"

/* Checks `args` (an object; NULL: none), and writes all problems as the members "message", "fix"
 * and "problems" of the object that is open in `j`. Returns the number of problems; if it is 0,
 * writes nothing. Only the first MAX_MCP_PROBLEMS problems are written; the others are counted. */
size_t tools_check_arguments(const struct mcp_tool *t, const struct json_doc *doc,
                             const struct json_node *args, struct json *j);

/* Reads an integer. Also accepts 5.0, which is an integer in JSON Schema. */
int tools_integer(const struct json_node *node, int64_t *ret);

/* Shortens a name that another program wrote, and reduces it to printable ASCII, so that a terminal
 * or a model reads it only as a name. Returns `out`. */
#define TOOLS_NAME_ROOM 48
const char *tools_plain_name(const char *name, char out[TOOLS_NAME_ROOM]);

/* 2^53 - 1: the largest integer that every JSON reader reads exactly. */
#define TOOLS_MAX_INTEGER 9007199254740991

#endif
