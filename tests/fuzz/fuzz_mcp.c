/* Runs the protocol of tools on arbitrary lines. Each line is a message from one client, or, if it
 * begins with !, an event: an answer (!done, !fail), a question (!ask), a client that disconnects
 * (!gone, !free), a change (!news), a call that becomes a task (!task). For any lines, each message
 * that is sent must be JSON-RPC, each request must have at most one response, the connection must
 * be told exactly once that a request has ended, and no call may be left at the end. */
#include <string.h>

#include "fuzz.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/tools.h"

#define MAX_HELD 64

struct fuzz {
	struct mcp_out out; /* must be the first member: fuzz_send() casts its pointer */
	struct mcp_server *server;
	struct mcp_peer *peer;
	struct mcp_call *held[MAX_HELD];
	size_t n_held;
	char sealed[8192]; /* the last requestState */
	long requests;
	long responses;
	long ends;
	long gone; /* requests whose end is not reported, because the client has gone */
};

static void fuzz_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                      size_t len)
{
	struct fuzz *f = (struct fuzz *)o;
	struct mcp_message m = { 0 };
	const char *why = NULL;
	int code = 0;

	must(mcp_message_read(&m, json, len, &code, &why) == 0);
	must(m.kind == kind && (kind == MCP_NOTIFICATION) == (m.id == NULL));
	must(status == 200 ||
	     (kind == MCP_RESPONSE && (status == 400 || status == 404 || status == 503)));
	must(memchr(json, '\n', len) == NULL);
	f->responses += kind == MCP_RESPONSE;
	const struct json_node *result = json_member(&m.doc, json_top(&m.doc), "result");
	const char *sealed = json_string(json_member(&m.doc, result, "requestState"), "");
	if (sealed[0] != '\0' && strlen(sealed) < sizeof(f->sealed)) {
		(void)stpcpy(f->sealed, sealed);
	}
	mcp_message_done(&m);
}

static void fuzz_end(struct mcp_out *o)
{
	((struct fuzz *)o)->ends++;
}

/* ---- the application ---- */

static void do_list(void *app, struct mcp_call *c)
{
	(void)app;
	(void)mcp_result(c);
	mcp_done(c);
}

static void do_hold(void *app, struct mcp_call *c)
{
	struct fuzz *f = app;

	if (f->n_held == MAX_HELD) {
		mcp_fail(c, MCP_E_INTERNAL, "full");
		return;
	}
	mcp_progress(c, 1, 0, json_string(mcp_param(c, "text"), NULL));
	mcp_log(c, MCP_ERROR, mcp_client_name(c), "[]");
	f->held[f->n_held++] = c;
}

static void do_ask(void *app, struct mcp_call *c)
{
	static const char *const keys[] = { "a", "b", "c" };
	static const char *const methods[] = { "elicitation/create", "sampling/createMessage",
		                               "roots/list" };
	const struct json_node *answer = NULL;
	bool missing = false;

	(void)app;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool wanted = mcp_param(c, keys[i]) != NULL;
		if (wanted && mcp_answer(c, keys[i], &answer) == MCP_UNASKED) {
			mcp_ask(c, keys[i], methods[i], "{}");
			missing = true;
		}
	}
	if (missing) {
		mcp_wait(c, json_string(mcp_param(c, "state"), NULL));
		return;
	}
	struct json *j = mcp_result(c);
	json_kstr(j, "state", mcp_state(c));
	json_kstr(j, "action", json_string(json_member(mcp_doc(c), answer, "action"), NULL));
	mcp_done(c);
}

static const struct mcp_field FIELDS[] = {
	{ .name = "s", .type = MCP_STRING, .required = true, .max = 8 },
	{ .name = "i", .type = MCP_INTEGER, .min = -5, .max = 5, .otherwise = "3" },
	{ .name = "b", .type = MCP_BOOLEAN },
	{ .name = "l", .type = MCP_STRINGS, .max = 3 },
};
static const struct mcp_tool TOOL[] = {
	{ .name = "t", .fields = FIELDS, .n_fields = ARRAY_LEN(FIELDS), .handle = do_ask },
	{ .name = "hold", .handle = do_hold, .input_schema = "{\"type\":\"object\"}" },
};
static const struct mcp_tools TOOLS = { TOOL, ARRAY_LEN(TOOL) };

static void do_tools(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_tools_list(&TOOLS, c);
}

static void do_tool(void *app, struct mcp_call *c)
{
	mcp_tools_call(&TOOLS, app, c);
}

static const struct mcp_method METHODS[] = {
	{ "tools/list", do_tools, MCP_CACHED },  { "tools/call", do_tool, MCP_ASKS },
	{ "resources/read", do_ask, MCP_ASKS },  { "prompts/get", do_ask, MCP_ASKS },
	{ "prompts/list", do_list, MCP_CACHED }, { "hold", do_hold, MCP_ASKS },
};

/* ---- what happens ---- */

static struct mcp_call *take(struct fuzz *f)
{
	return f->n_held > 0 ? f->held[--f->n_held] : NULL;
}

static void new_peer(struct fuzz *f)
{
	must(mcp_peer_new(f->server, "fuzz", &f->out, &f->peer) == 0);
}

static void go_away(struct fuzz *f)
{
	mcp_out_gone(f->peer, &f->out);
	f->gone = f->requests - f->ends;
}

static void happens(struct fuzz *f, const char *what)
{
	struct mcp_call *c = NULL;

	if (strcmp(what, "!gone") == 0) {
		go_away(f);
	} else if (strcmp(what, "!free") == 0) {
		mcp_peer_free(f->peer);
		new_peer(f);
	} else if (strcmp(what, "!news") == 0) {
		mcp_list_changed(f->server, MCP_TOOLS);
		mcp_resource_updated(f->server, "a:b");
	} else if (strcmp(what, "!task") == 0 && f->n_held > 0) {
		(void)mcp_become_task(f->held[f->n_held - 1], "later");
	} else if (strcmp(what, "!ask") == 0 && (c = take(f)) != NULL) {
		mcp_ask(c, "k", "elicitation/create", "{\"x\":[]}");
		mcp_wait(c, what);
	} else if (strcmp(what, "!fail") == 0 && (c = take(f)) != NULL) {
		mcp_fail_data(c, MCP_E_RESOURCE, "[1]", "%s", what);
	} else if (strcmp(what, "!done") == 0 && (c = take(f)) != NULL) {
		mcp_done(c);
	}
}

/* Replaces $ by the last requestState, which no fuzzer could guess. */
static void put_state(struct fuzz *f, const char *line, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (line[i] == '$') {
			buf_adds(out, f->sealed);
		} else {
			buf_addc(out, line[i]);
		}
	}
}

static void take_line(struct fuzz *f, const char *line, size_t len)
{
	struct mcp_message m = { 0 };
	const char *why = NULL;
	int code = 0;
	auto_buf text = BUF((size_t)8 << 20);

	put_state(f, line, len, &text);
	buf_add(&text, "", 0);
	if (text.failed) {
		return;
	}
	if (text.data[0] == '!') {
		happens(f, text.data);
		return;
	}
	if (mcp_message_read(&m, text.data, text.len, &code, &why) < 0) {
		must(why != NULL && (code == MCP_E_PARSE || code == MCP_E_REQUEST));
		mcp_message_done(&m);
		return;
	}
	must(m.kind != MCP_REQUEST || m.id != NULL);
	must((m.kind == MCP_RESPONSE) == (m.method == NULL));
	f->requests += m.kind == MCP_REQUEST;
	mcp_receive(f->peer, m.kind == MCP_REQUEST ? &f->out : NULL, &m);
	must(f->responses <= f->requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { .out = { .send = fuzz_send, .end = fuzz_end } };
	const struct mcp_app app = {
		.name = "fuzz",
		.version = "0",
		.features = MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS | MCP_LOGGING | MCP_SUBSCRIBE |
		            MCP_TOOLS_CHANGE | MCP_TASKS,
		.methods = METHODS,
		.n_methods = ARRAY_LEN(METHODS),
		.arg = &f,
	};
	const char *at = (const char *)data;
	size_t left = size;

	must(mcp_server_new(NULL, &app, &f.server, NULL) == 0);
	new_peer(&f);
	while (left > 0) {
		const char *end = memchr(at, '\n', left);
		size_t len = end != NULL ? (size_t)(end - at) : left;
		take_line(&f, at, len);
		len += end != NULL;
		at += len;
		left -= len;
	}
	mcp_peer_free(f.peer);
	must(f.ends + f.gone == f.requests);
	for (struct mcp_call *c = take(&f); c != NULL; c = take(&f)) {
		mcp_done(c);
	}
	must(f.server->n_calls == 0);
	mcp_server_free(f.server);
	return 0;
}
