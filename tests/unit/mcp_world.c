/* mcp_world.c - records the messages that a fake client receives, and has the handlers of the
 * tests. */
#include "unit.h"
#include "mcp_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"

struct world w;

/* ---- the fake client ---- */

static void out_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                     size_t len)
{
	struct world_out *to = (struct world_out *)o;
	struct json_doc doc AUTO(json_doc_done) = { 0 };
	const char *why = "";

	if (json_read(&doc, json, len, &why) < 0) {
		fail_msg("not JSON (%s): %.*s", why, (int)len, json);
	}
	if (to->n_sent == WORLD_SENT) {
		world_forget(to);
	}
	to->sent[to->n_sent] = strndup(json, len);
	to->kinds[to->n_sent] = kind;
	to->statuses[to->n_sent++] = status;
	if (to->gone_in_send != NULL) {
		struct mcp_peer *p = steal_ptr(&to->gone_in_send);
		mcp_out_gone(p, o);
	}
	if (to->free_in_send != NULL) {
		struct mcp_peer *p = steal_ptr(&to->free_in_send);
		mcp_peer_free(p);
	}
}

static void out_end(struct mcp_out *o)
{
	((struct world_out *)o)->n_ended++;
}

void world_out_init(struct world_out *o)
{
	*o = (struct world_out){ .out = { .send = out_send, .end = out_end } };
}

void world_forget(struct world_out *o)
{
	for (size_t i = 0; i < o->n_sent; i++) {
		free(o->sent[i]);
	}
	o->n_sent = 0;
}

void world_out_done(struct world_out *o)
{
	world_forget(o);
}

/* ---- the application ---- */

static void canceled(void *arg)
{
	(void)arg;
	w.n_canceled++;
	if (w.answers_on_cancel) {
		mcp_done(steal_ptr(&w.held));
	}
}

/* Records its call in w.held. The test answers it later. Counts cancellations. */
static void do_hold(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	w.held = c;
	mcp_on_cancel(c, canceled, NULL);
}

/* Like do_hold(), but does not count cancellations. A test can make many such calls. */
static void do_keep(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	w.held = c;
}

static void do_list(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	struct json *j = mcp_result(c);
	json_key(j, "tools");
	json_open(j, '[');
	json_close(j, ']');
	mcp_done(c);
}

/* Reports which client called, and its capabilities. */
static void do_who(void *app, struct mcp_call *c)
{
	struct json *j = mcp_result(c);

	(void)app;
	w.n_handled++;
	json_kstr(j, "principal", mcp_principal(c));
	json_kstr(j, "client", mcp_client_name(c));
	json_kstr(j, "version", c->version);
	json_kbool(j, "modern", c->era == MCP_ERA_MODERN);
	json_kbool(j, "elicit", mcp_can(c, MCP_CAN_ELICIT));
	json_kbool(j, "sample", mcp_can(c, MCP_CAN_SAMPLE));
	json_kbool(j, "roots", mcp_can(c, MCP_CAN_LIST_ROOTS));
	json_kbool(j, "ext", mcp_has_extension(c, "com.example/x"));
	mcp_done(c);
}

static void do_tell(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	mcp_progress(c, 1, 10, "one");
	mcp_progress(c, 1, 10, "again");
	mcp_progress(c, 0, 10, "back");
	mcp_progress(c, 5, 0, NULL);
	mcp_log(c, MCP_DEBUG, NULL, "\"low\"");
	mcp_log(c, MCP_WARNING, "test", "{\"high\":1}");
	mcp_done(c);
}

/* Asks the question "first". With `twice`, it then asks "second". With `both`, it asks the two
 * questions together. */
static void do_ask(void *app, struct mcp_call *c)
{
	static const char params[] = "{\"message\":\"?\",\"requestedSchema\":"
	                             "{\"type\":\"object\",\"properties\":{}}}";
	(void)app;
	const struct json_node *first = NULL;
	const struct json_node *second = NULL;
	enum mcp_answer a = mcp_answer(c, "first", &first);
	enum mcp_answer b = mcp_answer(c, "second", &second);

	w.n_handled++;
	if (a == MCP_UNASKED || (b == MCP_UNASKED && mcp_param(c, "both") != NULL)) {
		mcp_ask(c, "first", "elicitation/create", params);
		if (mcp_param(c, "both") != NULL) {
			mcp_ask(c, "second", "elicitation/create", params);
		}
		mcp_wait(c, "one");
		return;
	}
	if (b == MCP_UNASKED && mcp_param(c, "twice") != NULL) {
		mcp_ask(c, "second", "elicitation/create", params);
		mcp_wait(c, "two");
		return;
	}
	struct json *j = mcp_result(c);
	json_kstr(j, "state", mcp_state(c));
	json_kstr(j, "first", json_string(json_member(mcp_doc(c), first, "action"), "none"));
	json_kstr(j, "second", json_string(json_member(mcp_doc(c), second, "action"), "none"));
	json_kint(j, "a", a);
	json_kint(j, "b", b);
	json_kstr(j, "name", json_string(mcp_param(c, "name"), NULL));
	mcp_done(c);
}

/* Asks a question that is too long to be sent. */
static void do_ask_much(void *app, struct mcp_call *c)
{
	const struct json_node *answer = NULL;
	size_t len = MAX_MCP_RESULT;

	(void)app;
	w.n_handled++;
	enum mcp_answer a = mcp_answer(c, "much", &answer);
	if (a == MCP_UNASKED) {
		auto_free char *params = malloc(len + 3);
		assert_non_null(params);
		memset(params, ' ', len + 2);
		params[0] = '{';
		params[len + 1] = '}';
		params[len + 2] = '\0';
		mcp_ask(c, "much", "elicitation/create", params);
		mcp_wait(c, NULL);
		return;
	}
	json_kint(mcp_result(c), "much", a);
	mcp_done(c);
}

/* Asks the same question again after each answer. */
static void do_nag(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	mcp_ask(c, "k", "sampling/createMessage", "{}");
	mcp_wait(c, NULL);
}

/* Asks `n` questions, at most `each` in one round, and reports the number of answers. */
static void do_many(void *app, struct mcp_call *c)
{
	int64_t n = json_integer(mcp_param(c, "n"), 0);
	int64_t each = json_integer(mcp_param(c, "each"), 0);
	int64_t asked = 0;

	(void)app;
	w.n_handled++;
	for (int64_t i = 0; i < n && asked < each; i++) {
		const struct json_node *answer = NULL;
		char key[16];
		(void)snprintf(key, sizeof(key), "k%d", (int)i);
		if (mcp_answer(c, key, &answer) == MCP_UNASKED) {
			mcp_ask(c, key, "elicitation/create", "{}");
			asked++;
		}
	}
	if (asked > 0) {
		mcp_wait(c, "many");
		return;
	}
	json_kint(mcp_result(c), "answers", n);
	mcp_done(c);
}

static void do_fail(void *app, struct mcp_call *c)
{
	(void)app;
	w.n_handled++;
	(void)mcp_result(c); /* the handler begins a result, but then reports an error */
	mcp_fail_data(c, MCP_E_RESOURCE, "{\"uri\":\"x\"}", "no %s", "resource");
}

static void do_big(void *app, struct mcp_call *c)
{
	static char text[1 << 20];
	struct json *j = mcp_result(c);

	(void)app;
	w.n_handled++;
	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < 20; i++) {
		char key[16];
		(void)snprintf(key, sizeof(key), "k%d", i);
		json_kstr(j, key, text);
	}
	mcp_done(c);
}

static const struct mcp_method METHODS[] = {
	{ "tools/list", do_list, MCP_CACHED },
	{ "test/hold", do_hold, 0 },
	{ "test/keep", do_keep, 0 },
	{ "test/who", do_who, 0 },
	{ "test/tell", do_tell, 0 },
	{ "test/fail", do_fail, 0 },
	{ "test/big", do_big, 0 },
	{ "tools/call", do_ask, MCP_ASKS },
	{ "prompts/get", do_ask, MCP_ASKS },
	{ "test/nag", do_nag, MCP_ASKS },
	{ "test/much", do_ask_much, MCP_ASKS },
	{ "test/many", do_many, MCP_ASKS },
	{ "test/later", do_keep, MCP_ASKS },
	{ "test/modern", do_list, MCP_MODERN },
	{ "test/legacy", do_list, MCP_LEGACY },
};

void world_init(void)
{
	world_done();
	w = (struct world){ 0 };
	w.app = (struct mcp_app){
		.name = "world",
		.title = "A world",
		.version = "1",
		.instructions = "Be kind.",
		.features = MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS | MCP_COMPLETIONS |
		            MCP_LOGGING | MCP_SUBSCRIBE | MCP_TOOLS_CHANGE | MCP_TASKS,
		.extensions = "\"com.example/y\":{}",
		.methods = METHODS,
		.n_methods = ARRAY_LEN(METHODS),
		.ttl_ms = 5000,
		.arg = &w,
	};
	world_out_init(&w.out);
	assert_int_equal(mcp_server_new(NULL, &w.app, &w.server, NULL), 0);
	assert_int_equal(mcp_peer_new(w.server, "tester", &w.out.out, &w.peer), 0);
}

void world_done(void)
{
	mcp_peer_free(steal_ptr(&w.peer));
	mcp_server_free(steal_ptr(&w.server));
	world_out_done(&w.out);
}

int world_close(void **state)
{
	world_done();
	return 0;
}

/* ---- messages ---- */

void world_say_to(struct mcp_peer *p, struct mcp_out *out, const char *text)
{
	auto_free char *json = strdup(text);
	struct mcp_message m = { 0 };
	const char *why = NULL;
	int code = 0;

	for (char *at = json; *at != '\0'; at++) {
		*at = *at == '\'' ? '"' : *at;
	}
	if (mcp_message_read(&m, json, strlen(json), &code, &why) < 0) {
		mcp_message_done(&m);
		fail_msg("%d %s: %s", code, why, json);
	}
	mcp_receive(p, m.kind == MCP_REQUEST ? out : NULL, &m);
}

void world_say(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	assert_true(n >= 0);
	world_say_to(w.peer, &w.out.out, text);
	free(text);
}

void world_initialize(const char *capabilities)
{
	world_say("{'jsonrpc':'2.0','id':'init','method':'initialize','params':{"
	          "'protocolVersion':'2025-11-25','capabilities':%s,"
	          "'clientInfo':{'name':'tester','version':'0'}}}",
	          capabilities);
	world_say("{'jsonrpc':'2.0','method':'notifications/initialized'}");
	world_expect(&w.out, "'protocolVersion':'2025-11-25'");
	world_forget(&w.out);
	w.out.n_ended = 0;
}

void world_begin(const char *capabilities)
{
	world_init();
	world_initialize(capabilities);
}

const char *world_last(const struct world_out *o)
{
	return o->n_sent > 0 ? o->sent[o->n_sent - 1] : "";
}

char *world_state(const struct world_out *o)
{
	const char *at = strstr(world_last(o), "\"requestState\":\"");

	assert_non_null(at);
	at += strlen("\"requestState\":\"");
	return strndup(at, strcspn(at, "\""));
}

int world_last_status(const struct world_out *o)
{
	return o->n_sent > 0 ? o->statuses[o->n_sent - 1] : 0;
}

void world_expect(const struct world_out *o, const char *text)
{
	auto_free char *json = strdup(text);

	for (char *at = json; *at != '\0'; at++) {
		*at = *at == '\'' ? '"' : *at;
	}
	if (strstr(world_last(o), json) == NULL) {
		fail_msg("no %s in %s", json, world_last(o));
	}
}
