/* message.c - reads any bytes as one message of JSON-RPC. It does not check methods or parameters.
 */
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "mcp/mcp_priv.h"

#define MAX_SAFE_INTEGER 9007199254740991LL /* 2^53 - 1: a double holds it exactly */

/* Methods with the parameter that modern HTTP repeats in a header. */
static const struct {
	const char *method;
	const char *param;
} NAMED[] = {
	{ "tools/call", "name" },  { "prompts/get", "name" },    { "resources/read", "uri" },
	{ "tasks/get", "taskId" }, { "tasks/update", "taskId" }, { "tasks/cancel", "taskId" },
};

static int not_good(const char *why, const char **ret_why)
{
	*ret_why = why;
	return -1;
}

/* Returns whether the id can be sent back unchanged: it is a string, or an integer that every
 * client reads exactly. */
bool mcp_id_is_valid(const struct json_node *id)
{
	if (json_is(id, JSON_STRING)) {
		return id->len <= MAX_MCP_ID;
	}
	int64_t v = json_integer(id, INT64_MAX);
	return v >= -MAX_SAFE_INTEGER && v <= MAX_SAFE_INTEGER;
}

char *mcp_id_text(const struct json_node *id)
{
	auto_buf out = BUF(MESSAGE_ID - 1);
	struct json j = JSON_TO(&out, false);

	if (id->type == JSON_STRING) {
		json_strn(&j, id->str, id->len);
	} else {
		json_raw(&j, id->str, id->len);
	}
	return buf_steal(&out);
}

char *mcp_text_cut(const char *text, size_t max)
{
	return strndup(text, utf8_cut(text, max));
}

static int read_id(struct mcp_message *m, const struct json_node *id, const char **ret_why)
{
	if (!mcp_id_is_valid(id)) {
		return not_good("the id must be a string of at most 256 bytes or an integer",
		                ret_why);
	}
	m->id = mcp_id_text(id);
	return m->id != NULL ? 0 : not_good("out of memory", ret_why);
}

static int read_response(struct mcp_message *m, const struct json_node *top, const char **ret_why)
{
	const struct json_node *result = json_member(&m->doc, top, "result");
	const struct json_node *error = json_member(&m->doc, top, "error");

	m->kind = MCP_RESPONSE;
	if ((result != NULL) == (error != NULL)) {
		return not_good("a message must have a method, a result or an error", ret_why);
	}
	if (error != NULL && error->type != JSON_OBJECT) {
		return not_good("the error must be an object", ret_why);
	}
	if (result != NULL && m->id == NULL) {
		return not_good("a result must have an id", ret_why);
	}
	return 0;
}

static void read_meta(struct mcp_message *m)
{
	const struct json_node *meta = json_member(&m->doc, m->params, "_meta");
	const struct json_node *version = json_member(&m->doc, meta, META_VERSION);

	if (version != NULL) {
		m->version = json_string(version, "");
		/* A version that contains a NUL is unknown, even if the bytes before the NUL are a
		 * known version. */
		m->version = strlen(m->version) == version->len ? m->version : "";
	}
	for (size_t i = 0; i < ARRAY_LEN(NAMED); i++) {
		if (strcmp(NAMED[i].method, m->method) == 0) {
			m->name =
			        json_string(json_member(&m->doc, m->params, NAMED[i].param), NULL);
		}
	}
}

static int read_call(struct mcp_message *m, const struct json_node *top,
                     const struct json_node *method, const char **ret_why)
{
	m->kind = m->id != NULL ? MCP_REQUEST : MCP_NOTIFICATION;
	if (method->type != JSON_STRING || method->len == 0 || method->len > MAX_MCP_METHOD ||
	    strlen(method->str) != method->len) {
		return not_good("the method must be a non-empty string", ret_why);
	}
	if (json_member(&m->doc, top, "result") != NULL ||
	    json_member(&m->doc, top, "error") != NULL) {
		return not_good("a message cannot have both a method and a result", ret_why);
	}
	m->params = json_member(&m->doc, top, "params");
	if (m->params != NULL && m->params->type != JSON_OBJECT) {
		m->params = NULL;
		return not_good("params must be an object", ret_why);
	}
	m->method = method->str;
	read_meta(m);
	return 0;
}

static int read_top(struct mcp_message *m, const char **ret_why)
{
	const struct json_node *top = json_top(&m->doc);
	const struct json_node *id = json_member(&m->doc, top, "id");
	const struct json_node *method = json_member(&m->doc, top, "method");
	const struct json_node *version = json_member(&m->doc, top, "jsonrpc");

	if (top->type == JSON_ARRAY) {
		return not_good("batches are not supported: send one message at a time", ret_why);
	}
	if (top->type != JSON_OBJECT) {
		return not_good("a message must be an object", ret_why);
	}
	/* A response with a null id means that the client could not read the id of a request of
	 * the server. In any other message a null id is not valid. */
	bool nobody = json_is(id, JSON_NULL) && method == NULL;
	if (id != NULL && !nobody && read_id(m, id, ret_why) < 0) {
		return -1;
	}
	if (strcmp(json_string(version, ""), "2.0") != 0) {
		return not_good("jsonrpc must be \"2.0\"", ret_why);
	}
	return method != NULL ? read_call(m, top, method, ret_why) : read_response(m, top, ret_why);
}

int mcp_message_read(struct mcp_message *m, const char *text, size_t len, int *ret_code,
                     const char **ret_why)
{
	if (len > MAX_MCP_MESSAGE) {
		*ret_code = MCP_E_REQUEST;
		return not_good("the message is too long", ret_why);
	}
	if (json_read_del(&m->doc, text, len, ret_why) < 0) {
		*ret_code = MCP_E_PARSE;
		return -1;
	}
	if (read_top(m, ret_why) < 0) {
		*ret_code = MCP_E_REQUEST;
		return -1;
	}
	return 0;
}

void mcp_message_done(struct mcp_message *m)
{
	json_doc_done(&m->doc);
	free(m->id);
	*m = (struct mcp_message){ 0 };
}

void mcp_error_text(struct buf *out, const char *id, int code, const char *message,
                    const char *data)
{
	struct json j = JSON_TO(out, false);

	json_open(&j, '{');
	json_kstr(&j, "jsonrpc", "2.0");
	json_key(&j, "id");
	id = id != NULL ? id : "null";
	json_raw(&j, id, strlen(id));
	json_kopen(&j, "error", '{');
	json_kint(&j, "code", code);
	json_kstr(&j, "message", message);
	if (data != NULL) {
		json_key(&j, "data");
		json_raw(&j, data, strlen(data));
	}
	json_close(&j, '}');
	json_close(&j, '}');
}
