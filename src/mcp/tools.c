/* tools.c - describes a table of tools, and calls its handlers. */
#include "mcp/tools.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/suggest.h"
#include "mcp/mcp_priv.h"
#include "mcp/tools_check.h"

/* ---- tools/list -------------------------------------------------------------- */

static void write_bounds(struct json *j, const struct mcp_field *f, const char *min,
                         const char *max)
{
	if (f->min != 0 || f->type == MCP_INTEGER) {
		json_kint(j, min, f->min);
	}
	if (f->max != 0) {
		json_kint(j, max, f->max);
	}
}

static void write_choices(struct json *j, const struct mcp_field *f)
{
	json_kopen(j, "enum", '[');
	for (size_t i = 0; f->choices[i] != NULL; i++) {
		json_str(j, f->choices[i]);
	}
	json_close(j, ']');
}

static void write_field(struct json *j, const struct mcp_field *f)
{
	static const char *const TYPES[] = {
		[MCP_STRING] = "string",
		[MCP_INTEGER] = "integer",
		[MCP_BOOLEAN] = "boolean",
		[MCP_STRINGS] = "array",
	};

	json_kopen(j, f->name, '{');
	json_kstr(j, "type", TYPES[f->type]);
	json_kstr(j, "description", f->description);
	if (f->type == MCP_INTEGER) {
		write_bounds(j, f, "minimum", "maximum");
	} else if (f->type == MCP_STRINGS) {
		json_kopen(j, "items", '{');
		json_kstr(j, "type", "string");
		if (f->choices != NULL) {
			write_choices(j, f);
		}
		json_close(j, '}');
		write_bounds(j, f, "minItems", "maxItems");
	} else if (f->choices != NULL) {
		write_choices(j, f);
	} else if (f->type == MCP_STRING) {
		/* JSON Schema counts characters, but `min` and `max` count bytes. A maximum in
		 * bytes is also right for characters, because a text never has more characters
		 * than bytes. */
		write_bounds(j, f, "minLength", "maxLength");
	}
	if (f->otherwise != NULL) {
		json_key(j, "default");
		json_raw(j, f->otherwise, strlen(f->otherwise));
	}
	json_close(j, '}');
}

static void write_input_schema(struct json *j, const struct mcp_tool *t)
{
	bool any = false;

	json_key(j, "inputSchema");
	if (t->input_schema != NULL) {
		json_raw(j, t->input_schema, strlen(t->input_schema));
		return;
	}
	json_open(j, '{');
	json_kstr(j, "type", "object");
	json_kopen(j, "properties", '{');
	for (size_t i = 0; i < t->n_fields; i++) {
		write_field(j, &t->fields[i]);
		any = any || t->fields[i].required;
	}
	json_close(j, '}');
	if (any) {
		json_kopen(j, "required", '[');
		for (size_t i = 0; i < t->n_fields; i++) {
			if (t->fields[i].required) {
				json_str(j, t->fields[i].name);
			}
		}
		json_close(j, ']');
	}
	json_kbool(j, "additionalProperties", false);
	json_close(j, '}');
}

/* Writes a schema that accepts what `schema` accepts, and also the objects of mcp_tool_fail(),
 * because clients check errors against the schema, too. The root of the schema must describe
 * an object, because legacy revisions require this. */
static void write_output_schema(struct json *j, const char *schema)
{
	static const char error[] =
	        "{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\","
	        "\"properties\":{\"code\":{\"type\":\"string\"},\"message\":{\"type\":"
	        "\"string\"},\"fix\":{\"type\":\"string\"}},\"required\":[\"code\","
	        "\"message\"]}},\"required\":[\"error\"]}";

	json_kopen(j, "outputSchema", '{');
	json_kstr(j, "type", "object");
	json_kopen(j, "anyOf", '[');
	json_raw(j, schema, strlen(schema));
	json_raw(j, error, sizeof(error) - 1);
	json_close(j, ']');
	json_close(j, '}');
}

static void write_tool(struct json *j, const struct mcp_tool *t)
{
	static const struct {
		enum mcp_hint hint;
		const char *key;
	} HINTS[] = {
		{ MCP_READ_ONLY, "readOnlyHint" },
		{ MCP_DESTRUCTIVE, "destructiveHint" },
		{ MCP_IDEMPOTENT, "idempotentHint" },
		{ MCP_OPEN_WORLD, "openWorldHint" },
	};

	json_open(j, '{');
	json_kstr(j, "name", t->name);
	if (t->title != NULL) {
		json_kstr(j, "title", t->title);
	}
	json_kstr(j, "description", t->description);
	write_input_schema(j, t);
	if (t->output_schema != NULL) {
		write_output_schema(j, t->output_schema);
	}
	json_kopen(j, "annotations", '{');
	for (size_t i = 0; i < ARRAY_LEN(HINTS); i++) {
		json_kbool(j, HINTS[i].key, (t->hints & HINTS[i].hint) != 0);
	}
	json_close(j, '}');
	json_close(j, '}');
}

void mcp_tools_list(const struct mcp_tools *t, struct mcp_call *c)
{
	if (mcp_param(c, "cursor") != NULL) {
		mcp_fail(c, MCP_E_PARAMS,
		         "unknown cursor: the list of tools has one page; leave out "
		         "params.cursor");
		return;
	}
	struct json *j = mcp_result(c);
	json_kopen(j, "tools", '[');
	for (size_t i = 0; i < t->n; i++) {
		write_tool(j, &t->v[i]);
	}
	json_close(j, ']');
	mcp_done(c);
}

/* ---- tools/call -------------------------------------------------------------- */

static const struct mcp_tool *find_tool(const struct mcp_tools *t, const char *name)
{
	return ARRAY_FIND(e, t->v, t->n, strcmp(e->name, name) == 0);
}

/* Returns the row of the named tool. NULL: not found, and the call has been answered. */
static const struct mcp_tool *named_tool(const struct mcp_tools *t, struct mcp_call *c)
{
	const struct json_node *node = mcp_param(c, "name");
	const char *name = json_string(node, NULL);
	char shown[TOOLS_NAME_ROOM];

	if (name == NULL) {
		mcp_fail(c, MCP_E_PARAMS, "tools/call needs params.name, a string");
		return NULL;
	}
	const struct mcp_tool *tool = strlen(name) == node->len ? find_tool(t, name) : NULL;
	if (tool == NULL) {
		const char *near = t->n == 0 ? NULL
		                             : suggest(name, strlen(name), &t->v[0].name, t->n,
		                                       sizeof(t->v[0]));
		mcp_fail(c, MCP_E_PARAMS, "Unknown tool: %s%s%s%s", tools_plain_name(name, shown),
		         near != NULL ? " (did you mean " : "", near != NULL ? near : "",
		         near != NULL ? "?)" : "");
	}
	return tool;
}

/* Reads the default values of the tool into one object, for mcp_arg(). */
static int read_defaults(const struct mcp_tool *t, struct json_doc *doc)
{
	const char *why = NULL;
	auto_buf text = BUF(MAX_RECORD_LINE);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	for (size_t i = 0; i < t->n_fields; i++) {
		const char *otherwise = t->fields[i].otherwise;
		/* The caller looks up the items of an array in mcp_doc(), but a default is in
		 * another document. So the default of an array must be empty. */
		assert(otherwise == NULL || t->fields[i].type != MCP_STRINGS ||
		       strcmp(otherwise, "[]") == 0);
		if (otherwise != NULL) {
			json_key(&j, t->fields[i].name);
			json_raw(&j, otherwise, strlen(otherwise));
		}
	}
	json_close(&j, '}');
	return text.failed ? -1 : json_read(doc, text.data, text.len, &why);
}

/* Returns whether the arguments match the rows. If not, the call has been answered. */
static bool arguments_good(const struct mcp_tool *t, struct mcp_call *c)
{
	const struct json_node *args = mcp_param(c, "arguments");
	auto_buf text = BUF(MAX_RECORD_LINE);
	struct json j = JSON_TO(&text, false);

	if (args != NULL && !json_is(args, JSON_OBJECT)) {
		mcp_fail(c, MCP_E_PARAMS, "params.arguments must be an object");
		return false;
	}
	if (t->input_schema != NULL) {
		return true;
	}
	json_open(&j, '{');
	json_kopen(&j, "error", '{');
	json_kstr(&j, "code", "invalid_arguments");
	if (tools_check_arguments(t, mcp_doc(c), args, &j) > 0) {
		json_close(&j, '}');
		json_close(&j, '}');
		mcp_tool_done(c, NULL, text.data, true);
		return false;
	}
	if (read_defaults(t, &c->defaults) < 0) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return false;
	}
	return true;
}

void mcp_tools_call(const struct mcp_tools *t, void *app, struct mcp_call *c)
{
	const struct mcp_tool *tool = named_tool(t, c);

	if (tool != NULL && arguments_good(tool, c)) {
		tool->handle(app, c);
	}
}

const struct json_node *mcp_arg(const struct mcp_call *c, const char *name)
{
	const struct json_node *node = json_member(mcp_doc(c), mcp_param(c, "arguments"), name);

	return node != NULL ? node : json_member(&c->defaults, json_top(&c->defaults), name);
}

const char *mcp_arg_string(const struct mcp_call *c, const char *name)
{
	return json_string(mcp_arg(c, name), NULL);
}

int64_t mcp_arg_integer(const struct mcp_call *c, const char *name, int64_t otherwise)
{
	int64_t v = otherwise;

	(void)tools_integer(mcp_arg(c, name), &v);
	return v;
}

bool mcp_arg_boolean(const struct mcp_call *c, const char *name, bool otherwise)
{
	const struct json_node *node = mcp_arg(c, name);

	return json_is(node, JSON_TRUE) || (otherwise && !json_is(node, JSON_FALSE));
}

/* ---- results ----------------------------------------------------------------- */

void mcp_tool_done(struct mcp_call *c, const char *text, const char *structured, bool is_error)
{
	struct json *j = mcp_result(c);

	json_kopen(j, "content", '[');
	json_open(j, '{');
	json_kstr(j, "type", "text");
	json_kstr(j, "text", text != NULL ? text : structured);
	json_close(j, '}');
	json_close(j, ']');
	if (structured != NULL) {
		json_key(j, "structuredContent");
		json_raw(j, structured, strlen(structured));
	}
	json_kbool(j, "isError", is_error);
	mcp_done(c);
}

void mcp_tool_fail(struct mcp_call *c, const char *code, const char *message, const char *fix)
{
	auto_buf text = BUF(MAX_RECORD_LINE);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kopen(&j, "error", '{');
	json_kstr(&j, "code", code);
	json_kstr(&j, "message", message);
	if (fix != NULL) {
		json_kstr(&j, "fix", fix);
	}
	json_close(&j, '}');
	json_close(&j, '}');
	if (text.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	mcp_tool_done(c, NULL, text.data, true);
}
