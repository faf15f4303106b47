/* tools_check.h - the arguments of a tools/call against the rows of its tool. */
#ifndef MCP_TOOLS_CHECK_H
#define MCP_TOOLS_CHECK_H

#include "mcp/tools.h"

/* Every problem with `args` (an object; NULL: none given), as the members "message",
 * "fix" and "problems" of an object that is open in `j`; nothing is written, and it is
 * 0, where all is well. More than MAX_MCP_PROBLEMS are counted only. */
size_t tools_check_arguments(const struct mcp_tool *t, const struct json_doc *doc,
                             const struct json_node *args, struct json *j);

/* Also 5.0, which JSON Schema takes for an integer too. */
int tools_integer(const struct json_node *node, int64_t *ret);

/* A name that somebody else wrote, short and without anything that a terminal or a model
 * might take for more than a name. Returns `out`. */
#define TOOLS_NAME_ROOM 48
const char *tools_plain_name(const char *name, char out[TOOLS_NAME_ROOM]);

#define TOOLS_MAX_INTEGER 9007199254740991 /* 2^53 - 1: what every JSON reader keeps */

#endif
