/* tools.h - tools as a table. The same rows describe a tool in tools/list and check its arguments
 * in tools/call. */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp/mcp.h"

enum mcp_type { MCP_STRING, MCP_INTEGER, MCP_BOOLEAN, MCP_STRINGS /* an array of strings */ };

struct mcp_field {
	const char *name;
	enum mcp_type type;
	bool required;
	const char *description;
	/* Smallest integer, or least bytes of a string, or least items of an array. */
	int64_t min;
	int64_t max; /* the largest integer, or most bytes or items; 0: the limit of the type */
	/* Values that a string or an item may have, NULL-terminated; NULL: any. */
	const char *const *choices;
	/* Default value as JSON; NULL: none. The default of an array must be []. */
	const char *otherwise;
};

enum mcp_hint {
	MCP_READ_ONLY = 1,
	MCP_DESTRUCTIVE = 2,
	MCP_IDEMPOTENT = 4,
	MCP_OPEN_WORLD = 8,
};

struct mcp_tool {
	const char *name;
	const char *title;
	const char *description;
	const struct mcp_field *fields; /* all arguments that the tool takes */
	size_t n_fields;
	/* JSON that is used instead of `fields`; arguments are then not checked. */
	const char *input_schema;
	/* JSON schema of an object, without $ref; NULL: none. It need not include the errors of
	 * mcp_tool_fail(). */
	const char *output_schema;
	unsigned hints;
	mcp_handler *handle; /* called after the arguments were checked */
};

struct mcp_tools {
	const struct mcp_tool *v;
	size_t n;
};

/* Handlers of "tools/list" and "tools/call". For an unknown tool the client gets the error
 * MCP_E_PARAMS. For wrong arguments it gets a result that has isError and says what to write
 * instead. */
void mcp_tools_list(const struct mcp_tools *t, struct mcp_call *c);
void mcp_tools_call(const struct mcp_tools *t, void *app, struct mcp_call *c);

/* Returns the argument. If the client gave none, returns its default, or NULL if it has no default.
 */
const char *mcp_arg_string(const struct mcp_call *c, const char *name);
int64_t mcp_arg_integer(const struct mcp_call *c, const char *name, int64_t otherwise);
bool mcp_arg_boolean(const struct mcp_call *c, const char *name, bool otherwise);
const struct json_node *mcp_arg(const struct mcp_call *c, const char *name);

/* Sends the whole answer to a tools/call. `text` is for the model. `structured` is one finished
 * JSON object that matches output_schema, or NULL. If `text` is NULL, the JSON is sent as the text,
 * too. */
void mcp_tool_done(struct mcp_call *c, const char *text, const char *structured, bool is_error);
/* Sends an error that the model can act on, as {"error":{"code":..,"message":..,"fix":..}} and as
 * text. */
void mcp_tool_fail(struct mcp_call *c, const char *code, const char *message, const char *fix);

#endif
