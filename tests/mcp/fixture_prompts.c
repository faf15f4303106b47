/* fixture_prompts.c - prompts, and completion for their arguments. */
#include <string.h>

#include "fixture.h"

struct prompt {
	const char *name;
	const char *title;
	const char *arguments[3]; /* all required */
	void (*write)(struct mcp_call *c, struct json *j);
};

static const char *argument(const struct mcp_call *c, const char *name)
{
	return json_string(json_member(mcp_doc(c), mcp_param(c, "arguments"), name), "");
}

static void message_open(struct json *j, const char *type)
{
	json_open(j, '{');
	json_kstr(j, "role", "user");
	json_key(j, "content");
	json_open(j, '{');
	json_kstr(j, "type", type);
}

static void message_close(struct json *j)
{
	json_close(j, '}');
	json_close(j, '}');
}

static void message_text(struct json *j, const char *text)
{
	message_open(j, "text");
	json_kstr(j, "text", text);
	message_close(j);
}

static void write_simple(struct mcp_call *c, struct json *j)
{
	(void)c;
	message_text(j, "This is a simple prompt for testing.");
}

static void write_arguments(struct mcp_call *c, struct json *j)
{
	auto_buf text;
	buf_init(&text, 65536);
	buf_addf(&text, "Prompt with arguments: arg1='%s', arg2='%s'", argument(c, "arg1"),
	         argument(c, "arg2"));
	message_text(j, text.failed ? "too long" : text.data);
}

static void write_resource(struct mcp_call *c, struct json *j)
{
	message_open(j, "resource");
	json_key(j, "resource");
	json_open(j, '{');
	json_kstr(j, "uri", argument(c, "resourceUri"));
	json_kstr(j, "mimeType", "text/plain");
	json_kstr(j, "text", "Embedded resource content for testing.");
	json_close(j, '}');
	message_close(j);
	message_text(j, "Please process the embedded resource above.");
}

static void write_image(struct mcp_call *c, struct json *j)
{
	(void)c;
	message_open(j, "image");
	json_kstr(j, "data", PNG);
	json_kstr(j, "mimeType", "image/png");
	message_close(j);
	message_text(j, "Please analyze the image above.");
}

static const struct question CONTEXT[] = {
	{ "user_context", MCP_CAN_ELICIT,
	  "{\"message\":\"What context should the prompt use?\",\"requestedSchema\":"
	  "{\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},"
	  "\"required\":[\"context\"]}}" },
};

static void write_context(struct mcp_call *c, struct json *j)
{
	auto_buf text;
	buf_init(&text, 65536);
	buf_addf(&text, "Prompt with context: %s", fixture_answer(c, "user_context", "context"));
	message_text(j, text.failed ? "too long" : text.data);
}

static const struct prompt PROMPTS[] = {
	{ "test_simple_prompt", "A prompt without arguments", {}, write_simple },
	{ "test_prompt_with_arguments",
	  "A prompt with arguments",
	  { "arg1", "arg2" },
	  write_arguments },
	{ "test_prompt_with_embedded_resource",
	  "A prompt with a resource",
	  { "resourceUri" },
	  write_resource },
	{ "test_prompt_with_image", "A prompt with an image", {}, write_image },
	{ "test_input_required_result_prompt", "A prompt that asks first", {}, write_context },
};
#define N_PROMPTS (sizeof(PROMPTS) / sizeof(PROMPTS[0]))

void fixture_prompts(void *app, struct mcp_call *c)
{
	(void)app;
	struct json *j = mcp_result(c);
	json_key(j, "prompts");
	json_open(j, '[');
	for (size_t i = 0; i < N_PROMPTS; i++) {
		json_open(j, '{');
		json_kstr(j, "name", PROMPTS[i].name);
		json_kstr(j, "title", PROMPTS[i].title);
		json_kstr(j, "description", PROMPTS[i].title);
		json_key(j, "arguments");
		json_open(j, '[');
		for (size_t k = 0; PROMPTS[i].arguments[k] != NULL; k++) {
			json_open(j, '{');
			json_kstr(j, "name", PROMPTS[i].arguments[k]);
			json_kstr(j, "description", "An argument for testing");
			json_kbool(j, "required", true);
			json_close(j, '}');
		}
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
	mcp_done(c);
}

void fixture_prompt(void *app, struct mcp_call *c)
{
	(void)app;
	const char *name = json_string(mcp_param(c, "name"), "");
	const struct prompt *p = NULL;
	for (size_t i = 0; i < N_PROMPTS; i++) {
		if (strcmp(PROMPTS[i].name, name) == 0) {
			p = &PROMPTS[i];
		}
	}
	if (p == NULL) {
		mcp_fail(c, MCP_E_PARAMS, "no such prompt");
		return;
	}
	for (size_t k = 0; p->arguments[k] != NULL; k++) {
		if (*argument(c, p->arguments[k]) == '\0') {
			mcp_fail(c, MCP_E_PARAMS, "the argument %s is missing", p->arguments[k]);
			return;
		}
	}
	if (p->write == write_context && !fixture_ask(c, CONTEXT, 1, "", false)) {
		return;
	}
	struct json *j = mcp_result(c);
	json_kstr(j, "description", p->title);
	json_key(j, "messages");
	json_open(j, '[');
	p->write(c, j);
	json_close(j, ']');
	mcp_done(c);
}

void fixture_complete(void *app, struct mcp_call *c)
{
	(void)app;
	static const char *const WORDS[] = { "paris", "park", "party" };
	const struct json_node *arg = mcp_param(c, "argument");
	const char *begun = json_string(json_member(mcp_doc(c), arg, "value"), "");
	struct json *j = mcp_result(c);
	json_key(j, "completion");
	json_open(j, '{');
	json_key(j, "values");
	json_open(j, '[');
	int64_t n = 0;
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
		if (strncmp(WORDS[i], begun, strlen(begun)) == 0) {
			json_str(j, WORDS[i]);
			n++;
		}
	}
	json_close(j, ']');
	json_kint(j, "total", n);
	json_kbool(j, "hasMore", false);
	json_close(j, '}');
	mcp_done(c);
}
