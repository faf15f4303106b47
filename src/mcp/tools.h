/* tools.h - tools as a table: tools/list describes a tool, and tools/call checks its
 * arguments, from the same rows. */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp/mcp.h"

enum mcp_type { MCP_STRING, MCP_INTEGER, MCP_BOOLEAN, MCP_STRINGS /* an array of strings */ };

struct mcp_field {
	const char *name;
	enum mcp_type type;
	bool required;
	const char *description;
	int64_t min;                /* of an integer; bytes of a string; items of an array */
	int64_t max;                /* 0: the limit of the type */
	const char *const *choices; /* of a string or of each item, NULL-terminated; NULL: any */
	const char *otherwise;      /* the default, as JSON; NULL: none. For an array only [] */
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
	const char *input_schema;  /* JSON used instead of `fields`; the arguments are then not
	                              checked */
	const char *output_schema; /* JSON schema of an object, without $ref; NULL: none. Need not
	                              cover errors of mcp_tool_fail(). */
	unsigned hints;
	mcp_handler *handle; /* called after the arguments were checked */
};

struct mcp_tools {
	const struct mcp_tool *v;
	size_t n;
};

/* The handlers of "tools/list" and "tools/call" call these. An unknown tool is MCP_E_PARAMS.
 * Wrong arguments give a result with isError that says what to write. */
void mcp_tools_list(const struct mcp_tools *t, struct mcp_call *c);
void mcp_tools_call(const struct mcp_tools *t, void *app, struct mcp_call *c);

/* An argument; its default if the client gave none; NULL if it has no default. */
const char *mcp_arg_string(const struct mcp_call *c, const char *name);
int64_t mcp_arg_integer(const struct mcp_call *c, const char *name, int64_t otherwise);
bool mcp_arg_boolean(const struct mcp_call *c, const char *name, bool otherwise);
const struct json_node *mcp_arg(const struct mcp_call *c, const char *name);

/* The whole answer to a tools/call. `text` is for the model; `structured` is one finished
 * JSON object that fits output_schema, or NULL. If `text` is NULL, the JSON is also the
 * text. */
void mcp_tool_done(struct mcp_call *c, const char *text, const char *structured, bool is_error);
/* An error that the model can act on: {"error":{"code":..,"message":..,"fix":..}}, and the
 * same as text. */
void mcp_tool_fail(struct mcp_call *c, const char *code, const char *message, const char *fix);

#endif
