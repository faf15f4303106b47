/* fixture_ask.c - tools that ask the client questions. In the legacy era the server sends a
 * request; in the modern era it returns an incomplete result. The code of the tools is the same for
 * both. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "fixture.h"

static const char *const METHODS[] = {
	[MCP_CAN_ELICIT] = "elicitation/create",
	[MCP_CAN_SAMPLE] = "sampling/createMessage",
	[MCP_CAN_LIST_ROOTS] = "roots/list",
};
static const char *const REQUIRED[] = {
	[MCP_CAN_ELICIT] = "{\"requiredCapabilities\":{\"elicitation\":{}}}",
	[MCP_CAN_SAMPLE] = "{\"requiredCapabilities\":{\"sampling\":{}}}",
	[MCP_CAN_LIST_ROOTS] = "{\"requiredCapabilities\":{\"roots\":{}}}",
};

/* The conformance suite sends answers to questions that were not asked, without a requestState. The
 * library ignores such answers, because they do not prove that a person was asked. The fixture
 * accepts them, because its tools protect nothing. If an answer is not an object, the question is
 * asked again. */
static enum mcp_answer find_answer(const struct mcp_call *c, const char *key,
                                   const struct json_node **ret)
{
	enum mcp_answer a = mcp_answer(c, key, ret);
	if (a == MCP_UNASKED && mcp_state(c) == NULL) {
		*ret = json_member(mcp_doc(c), mcp_param(c, "inputResponses"), key);
		a = *ret != NULL ? MCP_ANSWERED : MCP_UNASKED;
	}
	return a == MCP_ANSWERED && !json_is(*ret, JSON_OBJECT) ? MCP_UNASKED : a;
}

bool fixture_ask(struct mcp_call *c, const struct question *q, size_t n, const char *state,
                 bool optional)
{
	size_t asked = 0;
	for (size_t i = 0; i < n; i++) {
		const struct json_node *node = NULL;
		enum mcp_answer a = find_answer(c, q[i].key, &node);
		if (a == MCP_REFUSED) {
			mcp_tool_done(c, "not supported, or refused by the client", NULL, true);
			return false;
		}
		if (a == MCP_ANSWERED) {
			continue;
		}
		if (mcp_can(c, q[i].needs)) {
			mcp_ask(c, q[i].key, METHODS[q[i].needs], q[i].params);
			asked++;
		} else if (!optional) {
			mcp_fail_data(c, MCP_E_CAPABILITY, REQUIRED[q[i].needs],
			              "the client cannot be asked by %s", METHODS[q[i].needs]);
			return false;
		}
	}
	if (asked > 0) {
		mcp_wait(c, state);
	}
	return asked == 0;
}

const char *fixture_answer(const struct mcp_call *c, const char *key, const char *member)
{
	const struct json_node *node = NULL;
	if (find_answer(c, key, &node) != MCP_ANSWERED) {
		return "";
	}
	if (member == NULL) {
		return json_string(json_member(mcp_doc(c), node, "action"), "");
	}
	node = json_member(mcp_doc(c), node, "content");
	return json_string(json_member(mcp_doc(c), node, member), "");
}

static size_t answer_roots(const struct mcp_call *c, const char *key)
{
	const struct json_node *node = NULL;
	(void)find_answer(c, key, &node);
	node = json_member(mcp_doc(c), node, "roots");
	return json_is(node, JSON_ARRAY) ? node->n : 0;
}

static void done(struct mcp_call *c, const struct buf *text)
{
	mcp_tool_done(c, text->failed ? "too long" : text->data, NULL, false);
}

/* ---- questions with a fixed text ------------------------------------------------ */

#define FORM(message, name, type)                                                                  \
	"{\"message\":\"" message "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":"    \
	"{\"" name "\":{\"type\":\"" type "\"}},\"required\":[\"" name "\"]}}"
#define SAMPLE(text)                                                                               \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text        \
	"\"}}],\"maxTokens\":100}"
#define ONE_OF(a, b, c, key)                                                                       \
	"\"" key "\":[{\"const\":\"value1\",\"title\":\"" a                                        \
	"\"},{\"const\":\"value2\",\"title\":\"" b "\"},{\"const\":\"value3\",\"title\":\"" c      \
	"\"}]"

#define FORM_DEFAULTS                                                                              \
	"{\"message\":\"Please review the form\",\"requestedSchema\":{\"type\":\"object\","        \
	"\"properties\":{"                                                                         \
	"\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"                                 \
	"\"age\":{\"type\":\"integer\",\"default\":30},"                                           \
	"\"score\":{\"type\":\"number\",\"default\":95.5},"                                        \
	"\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"          \
	"\"default\":\"active\"},"                                                                 \
	"\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}}"
#define FORM_ENUMS                                                                                 \
	"{\"message\":\"Please choose\",\"requestedSchema\":{\"type\":\"object\","                 \
	"\"properties\":{"                                                                         \
	"\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}," \
	"\"titledSingle\":{\"type\":\"string\"," ONE_OF(                                           \
	        "First", "Second", "Third",                                                        \
	        "oneOf") "},"                                                                      \
	                 "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\","        \
	                 "\"opt3\"],"                                                              \
	                 "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"        \
	                 "\"untitledMulti\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,"    \
	                 "\"items\":"                                                              \
	                 "{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},"  \
	                 "\"titledMulti\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,"      \
	                 "\"items\":{" ONE_OF("First", "Second", "Third",                          \
	                                      "anyOf") "}}},\"required\":[]}}"

static void say_action(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "Elicitation completed: action=%s", fixture_answer(c, "form", NULL));
}

static void say_hello(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "Hello, %s!", fixture_answer(c, "user_name", "name"));
}

static void say_sample(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "Sampling result: %s", fixture_answer(c, "sample_request", "text"));
}

static void say_roots(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "Found %zu root(s)", answer_roots(c, "roots_request"));
}

static void say_state(struct mcp_call *c, struct buf *out)
{
	const char *state = mcp_state(c);
	buf_adds(out, state != NULL && strcmp(state, "confirm") == 0 ? "state-ok" : "no state");
}

static void say_all(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "Name: %s; Greeting: %s; Roots: %zu", fixture_answer(c, "user_name", "name"),
	         fixture_answer(c, "greeting", "text"), answer_roots(c, "client_roots"));
}

static void say_abilities(struct mcp_call *c, struct buf *out)
{
	(void)c;
	buf_adds(out, "asked for what the client can answer");
}

static void say_success(struct mcp_call *c, struct buf *out)
{
	(void)c;
	buf_adds(out, "Success");
}

static void say_deleted(struct mcp_call *c, struct buf *out)
{
	bool yes = strcmp(fixture_answer(c, "confirm", NULL), "accept") == 0;
	buf_addf(out, "%s %s", yes ? "deleted" : "kept", mcp_arg_string(c, "filename"));
}

static void say_both(struct mcp_call *c, struct buf *out)
{
	buf_addf(out, "%s and %s", fixture_answer(c, "first", "name"),
	         fixture_answer(c, "second", "name"));
}

#define ASK_NAME                                                                                   \
	{                                                                                          \
		"user_name", MCP_CAN_ELICIT, FORM("What is your name?", "name", "string")          \
	}
#define ASK_CONFIRM                                                                                \
	{                                                                                          \
		"confirm", MCP_CAN_ELICIT, FORM("Please confirm", "ok", "boolean")                 \
	}

static const struct asker {
	const char *tool;
	size_t n;
	struct question q[3];
	bool optional;
	void (*say)(struct mcp_call *c, struct buf *out);
} ASKERS[] = {
	{ "test_elicitation_sep1034_defaults",
	  1,
	  { { "form", MCP_CAN_ELICIT, FORM_DEFAULTS } },
	  false,
	  say_action },
	{ "test_elicitation_sep1330_enums",
	  1,
	  { { "form", MCP_CAN_ELICIT, FORM_ENUMS } },
	  false,
	  say_action },
	{ "test_input_required_result_elicitation", 1, { ASK_NAME }, false, say_hello },
	{ "test_input_required_result_sampling",
	  1,
	  { { "sample_request", MCP_CAN_SAMPLE, SAMPLE("What is the capital of France?") } },
	  false,
	  say_sample },
	{ "test_input_required_result_list_roots",
	  1,
	  { { "roots_request", MCP_CAN_LIST_ROOTS, "{}" } },
	  false,
	  say_roots },
	{ "test_input_required_result_request_state", 1, { ASK_CONFIRM }, false, say_state },
	{ "test_input_required_result_tampered_state", 1, { ASK_CONFIRM }, false, say_state },
	{ "test_input_required_result_multiple_inputs",
	  3,
	  { ASK_NAME,
	    { "greeting", MCP_CAN_SAMPLE, SAMPLE("Generate a greeting") },
	    { "client_roots", MCP_CAN_LIST_ROOTS, "{}" } },
	  false,
	  say_all },
	{ "test_input_required_result_capabilities",
	  2,
	  { { "elicit_input", MCP_CAN_ELICIT, FORM("Elicitation input", "value", "string") },
	    { "sample_input", MCP_CAN_SAMPLE, SAMPLE("Sample request") } },
	  true,
	  say_abilities },
	{ "test_missing_capability",
	  1,
	  { { "sample_request", MCP_CAN_SAMPLE, SAMPLE("Are you there?") } },
	  false,
	  say_success },
	{ "confirm_delete", 1, { ASK_CONFIRM }, false, say_deleted },
	{ "multi_input",
	  2,
	  { { "first", MCP_CAN_ELICIT, FORM("The first name?", "name", "string") },
	    { "second", MCP_CAN_ELICIT, FORM("The second name?", "name", "string") } },
	  false,
	  say_both },
};

void tool_asks(void *app, struct mcp_call *c)
{
	(void)app;
	const char *tool = json_string(mcp_param(c, "name"), "");
	const struct asker *a = ASKERS;
	while (strcmp(a->tool, tool) != 0) {
		a++; /* finds it: only tools of this table have this handler */
	}
	if (!fixture_ask(c, a->q, a->n, "confirm", a->optional)) {
		return;
	}
	auto_buf text;
	buf_init(&text, 65536);
	a->say(c, &text);
	done(c, &text);
}

void tool_asks_in_task(void *app, struct mcp_call *c)
{
	if (mcp_state(c) == NULL) {
		(void)mcp_become_task(c, "waiting for an answer");
	}
	tool_asks(app, c);
}

void tool_asks_then_task(void *app, struct mcp_call *c)
{
	static const struct question NAME = ASK_NAME;
	if (!fixture_ask(c, &NAME, 1, "", false)) {
		return;
	}
	auto_buf text;
	buf_init(&text, 65536);
	say_hello(c, &text);
	(void)mcp_become_task(c, "greeting");
	later_start(app, c, 200, later_text, text.failed ? "too long" : text.data);
}

/* ---- questions that contain text of the caller ---------------------------------- */

/* Writes {"message":..,"requestedSchema":..}. */
static void write_form(struct json *j, const char *message)
{
	json_kstr(j, "message", message);
	static const char SCHEMA[] = "{\"type\":\"object\",\"properties\":{\"response\":{\"type\":"
	                             "\"string\",\"description\":\"The answer\"}},"
	                             "\"required\":[\"response\"]}";
	json_key(j, "requestedSchema");
	json_raw(j, SCHEMA, sizeof(SCHEMA) - 1);
}

static void write_sample(struct json *j, const char *prompt)
{
	json_key(j, "messages");
	json_open(j, '[');
	json_open(j, '{');
	json_kstr(j, "role", "user");
	json_key(j, "content");
	json_open(j, '{');
	json_kstr(j, "type", "text");
	json_kstr(j, "text", prompt);
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, ']');
	json_kint(j, "maxTokens", 100);
}

static bool ask_with(struct mcp_call *c, enum mcp_ability needs, const char *words,
                     void (*write)(struct json *j, const char *words))
{
	auto_buf params;
	buf_init(&params, 65536);
	struct json j;
	json_init(&j, &params, false);
	json_open(&j, '{');
	write(&j, words);
	json_close(&j, '}');
	if (params.failed) {
		mcp_tool_done(c, "too long", NULL, true);
		return false;
	}
	struct question q = { "question", needs, params.data };
	return fixture_ask(c, &q, 1, "", false);
}

void tool_elicits(void *app, struct mcp_call *c)
{
	(void)app;
	if (!ask_with(c, MCP_CAN_ELICIT, mcp_arg_string(c, "message"), write_form)) {
		return;
	}
	auto_buf text;
	buf_init(&text, 65536);
	buf_addf(&text, "User response: action=%s, content=%s", fixture_answer(c, "question", NULL),
	         fixture_answer(c, "question", "response"));
	done(c, &text);
}

void tool_samples(void *app, struct mcp_call *c)
{
	(void)app;
	if (!ask_with(c, MCP_CAN_SAMPLE, mcp_arg_string(c, "prompt"), write_sample)) {
		return;
	}
	auto_buf text;
	buf_init(&text, 65536);
	buf_addf(&text, "LLM response: %s", fixture_answer(c, "question", "text"));
	done(c, &text);
}

/* Asks in three rounds: the answer of the first round is in the state of the second. */
void tool_rounds(void *app, struct mcp_call *c)
{
	(void)app;
	static const struct question NAME = {
		"step1", MCP_CAN_ELICIT, FORM("Step 1: What is your name?", "name", "string")
	};
	static const struct question COLOR = { "step2", MCP_CAN_ELICIT,
		                               FORM("Step 2: What is your favorite color?", "color",
		                                    "string") };
	auto_buf text;
	buf_init(&text, 65536);
	const char *state = mcp_state(c);
	if (state == NULL || strncmp(state, "name:", 5) != 0) {
		if (!fixture_ask(c, &NAME, 1, "first", false)) {
			return;
		}
		buf_addf(&text, "name:%s", fixture_answer(c, "step1", "name"));
		state = text.failed ? "name:too long" : text.data;
	}
	if (!fixture_ask(c, &COLOR, 1, state, false)) {
		return;
	}
	auto_buf end;
	buf_init(&end, 65536);
	buf_addf(&end, "%s likes %s", state + 5, fixture_answer(c, "step2", "color"));
	done(c, &end);
}
