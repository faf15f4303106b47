/* fixture_tools.c - the table of tools, and the tools that answer at once. */
#include "fixture.h"

static const char JSON_VALUE[] = "{\"test\":\"data\",\"value\":123}";

static void content_text(struct json *j, const char *text)
{
	json_open(j, '{');
	json_kstr(j, "type", "text");
	json_kstr(j, "text", text);
	json_close(j, '}');
}

static void content_data(struct json *j, const char *type, const char *data, const char *mime)
{
	json_open(j, '{');
	json_kstr(j, "type", type);
	json_kstr(j, "data", data);
	json_kstr(j, "mimeType", mime);
	json_close(j, '}');
}

static void content_resource(struct json *j, const char *uri, const char *mime, const char *text)
{
	json_open(j, '{');
	json_kstr(j, "type", "resource");
	json_key(j, "resource");
	json_open(j, '{');
	json_kstr(j, "uri", uri);
	json_kstr(j, "mimeType", mime);
	json_kstr(j, "text", text);
	json_close(j, '}');
	json_close(j, '}');
}

static struct json *content_open(struct mcp_call *c)
{
	struct json *j = mcp_result(c);
	json_key(j, "content");
	json_open(j, '[');
	return j;
}

static void content_close(struct mcp_call *c, struct json *j)
{
	json_close(j, ']');
	mcp_done(c);
}

static void tool_text(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tool_done(c, "This is a simple text response for testing.", NULL, false);
}

static void tool_image(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = content_open(c);
	content_data(j, "image", PNG, "image/png");
	content_close(c, j);
}

static void tool_audio(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = content_open(c);
	content_data(j, "audio", WAV, "audio/wav");
	content_close(c, j);
}

static void tool_resource(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = content_open(c);
	content_resource(j, "test://embedded-resource", "text/plain",
	                 "This is an embedded resource content.");
	content_close(c, j);
}

static void tool_mixed(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = content_open(c);
	content_text(j, "Multiple content types test:");
	content_data(j, "image", PNG, "image/png");
	content_resource(j, "test://mixed-content-resource", "application/json", JSON_VALUE);
	content_close(c, j);
}

static void tool_error(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tool_done(c, "This tool intentionally returns an error for testing", NULL, true);
}

static void tool_change_tools(void *app, struct mcp_call *c)
{
	struct fixture *f = app;
	mcp_list_changed(f->mcp, MCP_TOOLS);
	mcp_tool_done(c, "changed", NULL, false);
}

static void tool_change_prompts(void *app, struct mcp_call *c)
{
	struct fixture *f = app;
	mcp_list_changed(f->mcp, MCP_PROMPTS);
	mcp_tool_done(c, "changed", NULL, false);
}

static void tool_greet(void *app, struct mcp_call *c)
{
	(void)app;
	auto_buf text;
	buf_init(&text, 4096);
	buf_addf(&text, "Hello, %s!", mcp_arg_string(c, "name"));
	mcp_tool_done(c, text.failed ? "Hello!" : text.data, NULL, false);
}

static const struct mcp_field MESSAGE[] = {
	{ .name = "message", .type = MCP_STRING, .required = true, .description = "what to ask" },
};
static const struct mcp_field PROMPT[] = {
	{ .name = "prompt", .type = MCP_STRING, .required = true, .description = "what to ask" },
};
static const struct mcp_field NAME[] = {
	{ .name = "name", .type = MCP_STRING, .required = true, .description = "who", .max = 100 },
};
static const struct mcp_field FILENAME[] = {
	{ .name = "filename", .type = MCP_STRING, .description = "what", .otherwise = "\"it\"" },
};
static const struct mcp_field SLOW[] = {
	{ .name = "seconds", .type = MCP_INTEGER, .description = "how long", .max = 3600 },
	{ .name = "label", .type = MCP_STRING, .description = "anything" },
};

/* A schema with all kinds of keywords, which the client must get unchanged. */
static const char SCHEMA_2020_12[] =
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
        "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":"
        "{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
        "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
        "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
        "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
        "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
        "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
        "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
        "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}";

/* The argument is repeated in a header: fixture_mirror.c compares both. */
static const char SCHEMA_MIRRORED[] =
        "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
        "\"x-mcp-header\":\"Region\"}},\"additionalProperties\":false}";

#define PLAIN(n, fn)                                                                               \
	{                                                                                          \
		.name = (n), .title = (n), .description = "for the conformance suite",             \
		.handle = (fn)                                                                     \
	}
#define WITH(n, f, fn)                                                                             \
	{                                                                                          \
		.name = (n), .title = (n), .description = "for the conformance suite",             \
		.fields = (f), .n_fields = sizeof(f) / sizeof((f)[0]), .handle = (fn)              \
	}

static const struct mcp_tool TOOLS[] = {
	PLAIN("test_simple_text", tool_text),
	PLAIN("test_image_content", tool_image),
	PLAIN("test_audio_content", tool_audio),
	PLAIN("test_embedded_resource", tool_resource),
	PLAIN("test_multiple_content_types", tool_mixed),
	PLAIN("test_error_handling", tool_error),
	PLAIN("test_tool_with_logging", tool_logging),
	PLAIN("test_logging_tool", tool_logging_once),
	PLAIN("test_tool_with_progress", tool_progress),
	PLAIN("test_streaming_elicitation", tool_streamed),
	PLAIN("test_reconnection", tool_reconnection),
	PLAIN("test_trigger_tool_change", tool_change_tools),
	PLAIN("test_trigger_prompt_change", tool_change_prompts),
	WITH("test_sampling", PROMPT, tool_samples),
	WITH("test_elicitation", MESSAGE, tool_elicits),
	PLAIN("test_elicitation_sep1034_defaults", tool_asks),
	PLAIN("test_elicitation_sep1330_enums", tool_asks),
	PLAIN("test_missing_capability", tool_asks),
	PLAIN("test_input_required_result_elicitation", tool_asks),
	PLAIN("test_input_required_result_sampling", tool_asks),
	PLAIN("test_input_required_result_list_roots", tool_asks),
	PLAIN("test_input_required_result_request_state", tool_asks),
	PLAIN("test_input_required_result_tampered_state", tool_asks),
	PLAIN("test_input_required_result_multiple_inputs", tool_asks),
	PLAIN("test_input_required_result_capabilities", tool_asks),
	PLAIN("test_input_required_result_multi_round", tool_rounds),
	WITH("greet", NAME, tool_greet),
	WITH("slow_compute", SLOW, tool_slow),
	PLAIN("failing_job", tool_failing),
	PLAIN("protocol_error_job", tool_breaking),
	WITH("confirm_delete", FILENAME, tool_asks_in_task),
	PLAIN("multi_input", tool_asks_in_task),
	PLAIN("test_tool_with_task", tool_asks_then_task),
	{ .name = "json_schema_2020_12_tool",
	  .title = "json_schema_2020_12_tool",
	  .description = "for the conformance suite",
	  .input_schema = SCHEMA_2020_12,
	  .handle = tool_text },
	{ .name = "test_mirrored",
	  .title = "test_mirrored",
	  .description = "for the conformance suite",
	  .input_schema = SCHEMA_MIRRORED,
	  .handle = tool_text },
};

const struct mcp_tools FIXTURE_TOOLS = { TOOLS, sizeof(TOOLS) / sizeof(TOOLS[0]) };
