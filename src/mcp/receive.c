/* receive.c - takes a message: determines its era, checks it, and calls its handler. */
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"

/* ---- requests ---- */

static bool same_id(const struct mcp_call *a, const struct mcp_call *b)
{
	/* Modern requests of several clients may have the same peer, each with its own `out`, so
	 * an id is unique only within one `out`. In a legacy session it is unique in the session.
	 */
	bool one_space = a->out == b->out || (a->era == MCP_ERA_LEGACY && b->era == MCP_ERA_LEGACY);

	return one_space && strcmp(a->m.id, b->m.id) == 0;
}

static bool is_duplicate(const struct mcp_call *c)
{
	for (const struct mcp_call *o = LIST_FIRST(&c->peer->calls); o != NULL;
	     o = LIST_NEXT(o, link)) {
		if (o != c && !o->canceled && o->out != NULL && same_id(o, c)) {
			return true;
		}
	}
	return false;
}

static bool token_good(const struct json_node *token)
{
	return token == NULL || (json_is(token, JSON_STRING) && token->len <= MAX_MCP_ID) ||
	       (json_is(token, JSON_NUMBER) && token->len <= MAX_MCP_ID);
}

static void refuse_version(struct mcp_call *c)
{
	auto_buf data = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&data, false);

	json_open(&j, '{');
	json_key(&j, "supported");
	mcp_write_versions(&j);
	json_kstr(&j, "requested", c->m.version);
	json_close(&j, '}');
	mcp_call_refuse(c, MCP_E_VERSION, "unsupported protocol version",
	                data.failed ? NULL : data.data);
}

/* Checks that a modern request carries its version and capabilities. */
static int check_modern(struct mcp_call *c)
{
	const struct json_node *level = mcp_meta(c, META_LOG_LEVEL);
	const struct json_node *client = mcp_meta(c, META_CLIENT);
	enum mcp_level parsed = MCP_DEBUG;
	const char *why = NULL;

	if (c->m.version[0] == '\0') {
		why = "_meta: " META_VERSION " must be a string";
	} else if (!mcp_version_modern(c->m.version)) {
		refuse_version(c);
		return -1;
	} else if (!json_is(mcp_meta(c, META_CAPABILITIES), JSON_OBJECT)) {
		why = "_meta: " META_CAPABILITIES " must be an object";
	} else if (client != NULL && client->type != JSON_OBJECT) {
		why = "_meta: " META_CLIENT " must be an object";
	} else if (level != NULL && mcp_level_parse(json_string(level, ""), &parsed) < 0) {
		why = "_meta: " META_LOG_LEVEL " must be a log level";
	}
	if (why != NULL) {
		mcp_call_refuse(c, MCP_E_PARAMS, why, NULL);
		return -1;
	}
	c->version = mcp_version_static(c->m.version);
	return 0;
}

static int check_legacy(struct mcp_call *c)
{
	static const char *const before[] = { "initialize", "ping" };

	c->version = c->peer->version != NULL ? c->peer->version : MCP_LATEST_LEGACY;
	if (c->peer->version != NULL) {
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		if (strcmp(before[i], c->m.method) == 0) {
			return 0;
		}
	}
	mcp_call_refuse(c, MCP_E_PARAMS,
	                "the request has no _meta with " META_VERSION
	                ", and the session is not initialized",
	                NULL);
	return -1;
}

static int check_request(struct mcp_call *c)
{
	const struct json_node *meta = mcp_param(c, "_meta");

	c->era = c->m.version != NULL ? MCP_ERA_MODERN : MCP_ERA_LEGACY;
	c->version = MCP_LATEST;
	if (is_duplicate(c)) {
		mcp_call_refuse(c, MCP_E_REQUEST, "a request with this id is already running",
		                NULL);
		return -1;
	}
	if (c->peer->n_calls > MAX_MCP_CALLS) {
		mcp_call_refuse(c, MCP_E_INTERNAL, "too many requests are running", NULL);
		return -1;
	}
	/* A single peer must not use up all the memory. If several peers together have done so,
	 * small requests are still accepted. */
	if ((c->peer->weight > MAX_MCP_HELD && c->peer->n_calls > 1) ||
	    (c->server->weight > MAX_MCP_HELD_ALL && c->weight > MAX_MCP_SMALL)) {
		mcp_call_refuse(c, MCP_E_INTERNAL, "the running requests together are too large",
		                NULL);
		return -1;
	}
	if (meta != NULL && meta->type != JSON_OBJECT) {
		mcp_call_refuse(c, MCP_E_PARAMS, "_meta must be an object", NULL);
		return -1;
	}
	if (!token_good(mcp_meta(c, "progressToken"))) {
		mcp_call_refuse(c, MCP_E_PARAMS,
		                "_meta: progressToken must be a string or a number", NULL);
		return -1;
	}
	return c->era == MCP_ERA_MODERN ? check_modern(c) : check_legacy(c);
}

static void take_request(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m)
{
	struct mcp_call *c = mcp_call_new(p, out, m);

	if (c == NULL) {
		auto_buf text = BUF(MAX_MCP_RESULT);
		mcp_error_text(&text, m->id, MCP_E_INTERNAL, "out of memory", NULL);
		if (!text.failed) {
			out->send(out, MCP_RESPONSE, 500, text.data, text.len);
		}
		out->end(out);
		return;
	}
	if (check_request(c) < 0) {
		return;
	}
	c->row = mcp_method_find(c->server, c->era, c->m.method);
	if (c->row == NULL) {
		mcp_fail(c, MCP_E_METHOD, "unknown method '%s'", c->m.method);
		return;
	}
	if (c->era == MCP_ERA_MODERN && mcp_call_open_state(c) < 0) {
		return;
	}
	mcp_call_run(c);
}

/* ---- notifications ---- */

/* Cancels a request by its id, in a legacy session or if all requests share one `out`. Unknown ids
 * are ignored, because the request may have been answered already. */
static void take_cancel(struct mcp_peer *p, const struct mcp_message *m)
{
	const struct json_node *id = json_member(&m->doc, m->params, "requestId");

	if (id == NULL || !mcp_id_is_valid(id)) {
		return;
	}
	auto_free char *text = mcp_id_text(id);
	struct mcp_call *c = LIST_FIRST(&p->calls);
	while (c != NULL && text != NULL &&
	       (c->canceled || c->out == NULL || strcmp(c->m.id, text) != 0 ||
	        (c->era == MCP_ERA_MODERN && c->out != p->news))) {
		c = LIST_NEXT(c, link);
	}
	if (c != NULL && text != NULL) {
		mcp_call_cancel(c);
	}
}

static void take_notification(struct mcp_peer *p, const struct mcp_message *m)
{
	if (strcmp(m->method, "notifications/cancelled") == 0) {
		take_cancel(p, m);
	}
	/* Other notifications (initialized, progress, roots/list_changed) are ignored: nothing
	 * depends on them. */
}

/* ---- all messages ---- */

void mcp_receive(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m)
{
	p->refs++;
	switch (m->kind) {
	case MCP_REQUEST:
		take_request(p, out, m);
		break;
	case MCP_NOTIFICATION:
		take_notification(p, m);
		break;
	case MCP_RESPONSE:
		mcp_peer_take_response(p, m);
		break;
	}
	mcp_message_done(m);
	mcp_peer_unref(p);
}

void mcp_out_gone(struct mcp_peer *p, struct mcp_out *out)
{
	struct mcp_call *c = LIST_FIRST(&p->calls);

	p->refs++;
	while (c != NULL) {
		if (c->out == out) {
			c->out = NULL;
			mcp_call_cancel(c);
			c = LIST_FIRST(&p->calls); /* a callback may have changed the list */
		} else {
			c = LIST_NEXT(c, link);
		}
	}
	mcp_peer_unref(p);
}
