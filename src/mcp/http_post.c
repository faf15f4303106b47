/* http_post.c - POST, GET and DELETE, in both eras.
 *
 * A message is modern if its body says so; the headers must then agree. Every other message is
 * legacy: `initialize` creates a session, and all later messages name the session. */
#include <string.h>

#include "base/number.h"
#include "mcp/http_priv.h"

#define VERSION_TEXT 32
#define EVENT_ID     48

/* Gives the message to the protocol. If it is a request, makes a stream for its answer. Any other
 * message is answered with 202. */
static int hand_over(struct http_conn *c, struct http_session *s, struct mcp_message *m)
{
	if (s == NULL && c->peer == NULL &&
	    mcp_peer_new(c->http->server, c->http->principal, NULL, &c->peer) < 0) {
		return -1;
	}
	struct mcp_peer *peer = s != NULL ? s->peer : c->peer;

	if (m->kind != MCP_REQUEST) {
		mcp_receive(peer, NULL, m);
		http_conn_answer(c, 202, "", NULL, 0);
		return 0;
	}
	struct http_stream *x = http_stream_new(c, s, false);

	if (x == NULL) {
		return -1;
	}
	x->initialize = s != NULL && strcmp(m->method, "initialize") == 0;
	mcp_receive(peer, &x->to, m);
	return 0;
}

static void refuse_message(struct http_conn *c, struct mcp_message *m, int status, int code,
                           const char *why)
{
	http_conn_refuse(c, status, m->id, code, why);
	mcp_message_done(m);
}

static void take_modern(struct http_conn *c, struct mcp_message *m)
{
	const char *why = http_check_mirror(&c->request, m);

	if (why != NULL) {
		refuse_message(c, m, 400, MCP_E_HEADER, why);
	} else if (hand_over(c, NULL, m) < 0) {
		refuse_message(c, m, 503, MCP_E_INTERNAL, "out of memory");
	}
}

/* Returns the session that the headers name. NULL: it was not found, and the error has been sent.
 */
static struct http_session *named_session(struct http_conn *c, const char *id)
{
	char name[HTTP_SESSION_ID], version[VERSION_TEXT];
	const struct span *field = http_request_field(&c->request, "mcp-session-id");

	if (http_request_field(&c->request, "mcp-protocol-version") != NULL &&
	    (http_field(&c->request, "mcp-protocol-version", version, sizeof version) == NULL ||
	     !mcp_version_known(version))) {
		http_conn_refuse(c, 400, id, MCP_E_REQUEST, "unknown MCP-Protocol-Version");
		return NULL;
	}
	if (field == NULL) {
		http_conn_refuse(c, 400, id, MCP_E_REQUEST, "Mcp-Session-Id is missing");
		return NULL;
	}
	struct http_session *s = NULL;

	if (http_field(&c->request, "mcp-session-id", name, sizeof name) != NULL) {
		s = http_session_find(c->http, name);
	}
	if (s == NULL) {
		http_conn_refuse(c, 404, id, MCP_E_REQUEST,
		                 "session not found: send initialize again");
	}
	return s;
}

static bool begins_session(const struct http_conn *c, const struct mcp_message *m)
{
	return m->kind == MCP_REQUEST && strcmp(m->method, "initialize") == 0 &&
	       http_request_field(&c->request, "mcp-session-id") == NULL;
}

static void take_legacy(struct http_conn *c, struct mcp_message *m)
{
	bool begins = begins_session(c, m);
	struct http_session *s = begins ? http_session_new(c->http) : named_session(c, m->id);

	if (s == NULL) {
		if (begins) {
			http_conn_refuse(c, 503, m->id, MCP_E_INTERNAL, "too many sessions");
		}
		mcp_message_done(m);
	} else if (hand_over(c, s, m) < 0) {
		refuse_message(c, m, 503, MCP_E_INTERNAL, "out of memory");
		if (begins) {
			http_session_free(s);
		}
	}
}

static void take_post(struct http_conn *c)
{
	struct mcp_message m = { 0 };
	char version[VERSION_TEXT];
	const char *header =
	        http_field(&c->request, "mcp-protocol-version", version, sizeof version);
	const char *why;
	int code;
	int rc =
	        mcp_message_read(&m, c->body.len > 0 ? c->body.data : "", c->body.len, &code, &why);

	http_conn_forget_body(c); /* frees the body now, because the answer may take long */
	if (rc < 0) {
		refuse_message(c, &m, 400, code, why);
	} else if (m.version != NULL) {
		take_modern(c, &m);
	} else if (header != NULL && mcp_version_modern(header)) {
		refuse_message(
		        c, &m, 400, m.kind == MCP_RESPONSE ? MCP_E_REQUEST : MCP_E_PARAMS,
		        m.kind == MCP_RESPONSE
		                ? "clients send no responses in this revision of the protocol"
		                : "_meta has no io.modelcontextprotocol/protocolVersion");
	} else {
		take_legacy(c, &m);
	}
}

/* Parses "STREAM-EVENT", an id that http_stream.c made. */
static bool parse_event(const char *text, uint64_t *ret_stream, uint64_t *ret_event)
{
	const char *rest = text != NULL ? number_read(text, UINT64_MAX, ret_stream) : NULL;

	return rest != NULL && *rest == '-' && number_parse(rest + 1, 0, UINT64_MAX, ret_event);
}

static void resume_stream(struct http_conn *c, struct http_session *s)
{
	char text[EVENT_ID];
	uint64_t number, event;
	struct http_stream *x = NULL;

	if (parse_event(http_field(&c->request, "last-event-id", text, sizeof text), &number,
	                &event)) {
		x = http_session_stream(s, number);
	}
	if (x == NULL || !x->begun) { /* a 404 would end the session */
		http_conn_refuse(c, 400, NULL, MCP_E_REQUEST,
		                 "no stream of this session has this event");
		return;
	}
	/* An answer after this event is lost. Ending the session is the only way to tell the
	 * client. */
	if (x->lost > event) {
		http_session_end_soon(s);
		http_conn_refuse(c, 404, NULL, MCP_E_REQUEST,
		                 "an answer was lost because there was no room to keep it: send "
		                 "initialize again");
		return;
	}
	http_stream_resume(x, c, event);
}

static void take_get(struct http_conn *c)
{
	struct http_session *s = named_session(c, NULL);

	if (s == NULL) {
		return;
	}
	if (http_request_field(&c->request, "last-event-id") != NULL) {
		resume_stream(c, s);
		return;
	}
	struct http_stream *x = http_stream_new(c, s, true);

	if (x == NULL) {
		http_conn_refuse(c, 503, NULL, MCP_E_INTERNAL, "out of memory");
		return;
	}
	http_stream_open(x);
}

static void take_delete(struct http_conn *c)
{
	struct http_session *s = named_session(c, NULL);

	if (s != NULL) {
		http_session_free(s);
		http_conn_answer(c, 200, "", NULL, 0);
	}
}

void http_dispatch(struct http_conn *c)
{
	if (http_span_is(c->request.method, "POST")) {
		take_post(c);
	} else if (http_span_is(c->request.method, "GET")) {
		take_get(c);
	} else {
		take_delete(c);
	}
}
