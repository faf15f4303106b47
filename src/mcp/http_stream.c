/* http_stream.c - the messages of one request, or the messages of a session that belong to no
 * request (news).
 *
 * If the first message is the response, the answer is plain JSON. If another message comes first,
 * the answer is a stream of events. In the legacy era events have ids, "STREAM-EVENT", and the last
 * events are kept: a client whose connection broke resumes the stream with the id of the last event
 * that it received. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "mcp/http_priv.h"

#define KEPT_MS  60000 /* time in which a broken stream can be resumed */
#define RETRY_MS 1000  /* time that a client waits before it resumes */
#define ID_TEXT  64

static void stream_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                        size_t len);
static void stream_end(struct mcp_out *o);

struct http_stream *http_stream_new(struct http_conn *c, struct http_session *s, bool news)
{
	struct http_stream *x = calloc(1, sizeof *x);

	if (x == NULL) {
		return NULL;
	}
	*x = (struct http_stream){ .to = { .send = stream_send, .end = stream_end },
		                   .http = c->http,
		                   .conn = c,
		                   .peer = s != NULL ? s->peer : c->peer,
		                   .session = s,
		                   .news = news };
	if (s != NULL) {
		x->number = ++s->numbers;
		LIST_INSERT_HEAD(&s->streams, x, link);
	}
	c->stream = x;
	return x;
}

static void drop_first(struct http_stream *x)
{
	struct http_event *e = x->first;

	assert(e != NULL && x->kept >= e->len && x->http->kept_bytes >= e->len);
	x->first = e->next;
	if (x->first == NULL) {
		x->last = NULL;
	}
	x->kept -= e->len;
	x->http->kept_bytes -= e->len;
	free(e);
}

/* Frees a stream that neither the protocol nor a connection uses any more. */
static void dispose_stream(struct http_stream *x)
{
	loop_untimer(&x->forget);
	while (x->first != NULL) {
		drop_first(x);
	}
	if (x->session != NULL) {
		LIST_REMOVE(x, link);
	}
	free(x);
}

/* Separates the stream from its connection. The connection stays open. */
static struct http_conn *detach_conn(struct http_stream *x)
{
	struct http_conn *c = x->conn;

	x->conn = NULL;
	if (c != NULL) {
		c->stream = NULL;
	}
	return c;
}

void http_stream_free(struct http_stream *x)
{
	struct http_conn *c = detach_conn(x);

	if (!x->news && !x->over) {
		mcp_out_gone(x->peer, &x->to);
	}
	if (c != NULL && x->begun) {
		http_conn_stream_end(c);
	} else if (c != NULL) {
		http_conn_refuse(c, 404, NULL, MCP_E_REQUEST, "the session has ended");
	}
	dispose_stream(x);
}

static void forget_stream(void *arg)
{
	http_stream_free(arg);
}

/* Keeps the stream for KEPT_MS, so that the client can resume it. */
static void keep_for_now(struct http_stream *x)
{
	if (loop_after(x->http->loop, KEPT_MS, forget_stream, x, &x->forget) < 0) {
		x->forget = NULL;
	}
}

void http_stream_lost(struct http_stream *x)
{
	(void)detach_conn(x);
	if (x->session == NULL) {
		http_stream_free(x);
		return;
	}
	keep_for_now(x);
	http_session_trim(x->session);
}

/* ---- events ------------------------------------------------------------------ */

static const char *session_field(const struct http_stream *x, char out[HTTP_SESSION_ID + 24])
{
	out[0] = '\0';
	if (x->initialize && mcp_peer_version(x->session->peer)[0] != '\0') {
		(void)snprintf(out, HTTP_SESSION_ID + 24, "Mcp-Session-Id: %s\r\n", x->session->id);
	}
	return out;
}

/* Returns true if the stream belongs to a session and the client's protocol version can resume a
 * stream that has not ended. */
static bool can_resume(const struct http_stream *x)
{
	return x->session != NULL && mcp_version_resumes(mcp_peer_version(x->session->peer));
}

/* Sends a client of 2025-11-25 an event without data, so that the client has an id to resume
 * with. Older revisions have no such events: their clients get only `retry`. */
static void send_first_id(struct http_stream *x)
{
	char text[ID_TEXT];
	bool knows = can_resume(x);
	int n = knows ? snprintf(text, sizeof text, "id: %llu-0\nretry: %d\ndata: \n\n",
	                         (unsigned long long)x->number, RETRY_MS)
	              : snprintf(text, sizeof text, "retry: %d\n\n", RETRY_MS);

	http_conn_event(x->conn, text, (size_t)n);
}

void http_stream_open(struct http_stream *x)
{
	char field[HTTP_SESSION_ID + 24];

	x->begun = true;
	http_conn_stream(x->conn, session_field(x, field));
	if (x->session != NULL) {
		send_first_id(x);
	}
}

/* Formats an event. Line feeds of the JSON become blanks: they can only be white space between
 * tokens. */
static struct http_event *event_new(struct http_stream *x, const char *json, size_t len)
{
	char id[ID_TEXT] = "";
	const char *before = "event: message\ndata: ", *behind = "\n\n";
	struct http_event *e = malloc(sizeof *e + ID_TEXT + strlen(before) + len + strlen(behind));

	x->events++;
	if (e == NULL) {
		return NULL;
	}
	*e = (struct http_event){ .number = x->events };
	if (x->session != NULL) {
		(void)snprintf(id, sizeof id, "id: %llu-%llu\n", (unsigned long long)x->number,
		               (unsigned long long)e->number);
	}
	char *p = mempcpy(e->text, id, strlen(id));

	p = mempcpy(p, before, strlen(before));
	memcpy(p, json, len);
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '\n' || p[i] == '\r') {
			p[i] = ' ';
		}
	}
	p = mempcpy(p + len, behind, strlen(behind));
	e->len = (size_t)(p - e->text);
	return e;
}

/* Takes the event and keeps it. The newest event of a stream is kept whatever its size,
 * because it may be the response. But all streams together may keep only MAX_HTTP_KEPT bytes:
 * if a response is lost because of this limit, the client learns it when it resumes
 * (http_post.c). */
static void keep_event(struct http_stream *x, enum mcp_kind kind, struct http_event *e)
{
	while (x->first != NULL && x->kept + e->len > MAX_HTTP_REPLAY) {
		drop_first(x);
	}
	if (x->http->kept_bytes + e->len > MAX_HTTP_KEPT) {
		x->lost = kind != MCP_NOTIFICATION ? e->number : x->lost;
		free(e);
		return;
	}
	if (x->last != NULL) {
		x->last->next = e;
	} else {
		x->first = e;
	}
	x->last = e;
	x->kept += e->len;
	x->http->kept_bytes += e->len;
}

void http_stream_put(struct http_stream *x, enum mcp_kind kind, const char *json, size_t len)
{
	if (!x->begun && x->conn == NULL) {
		/* The connection broke before any event: the client has no id to resume with. */
		return;
	}
	if (kind == MCP_NOTIFICATION && x->conn != NULL &&
	    queue_left(&x->conn->queue) + len > MAX_MCP_NEWS) {
		return; /* a client that does not read loses news */
	}
	if (!x->begun) {
		http_stream_open(x);
	}
	struct http_event *e = event_new(x, json, len);

	if (e == NULL) {
		x->lost = kind != MCP_NOTIFICATION ? x->events : x->lost;
		if (x->conn != NULL) {
			http_conn_break(x->conn);
		}
		return;
	}
	if (x->conn != NULL) {
		http_conn_event(x->conn, e->text, e->len);
	}
	if (x->session != NULL) {
		keep_event(x, kind, e);
	} else {
		free(e);
	}
}

static void stream_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                        size_t len)
{
	struct http_stream *x = (struct http_stream *)o;
	char field[HTTP_SESSION_ID + 24];

	if (kind != MCP_RESPONSE || x->begun) {
		http_stream_put(x, kind, json, len);
		return;
	}
	x->answered = true;
	if (x->conn != NULL) {
		http_conn_answer(detach_conn(x), status, session_field(x, field), json, len);
	}
}

static void stream_end(struct mcp_out *o)
{
	struct http_stream *x = (struct http_stream *)o;
	struct http_conn *c = detach_conn(x);

	x->over = true;
	if (x->initialize && mcp_peer_version(x->session->peer)[0] == '\0') {
		http_session_end_soon(x->session);
	}
	if (c != NULL && x->begun) {
		http_conn_stream_end(c);
	} else if (c != NULL && !x->answered) {
		/* The call was canceled: there is no response. */
		http_conn_answer(c, 202, "", NULL, 0);
	}
	if (x->session != NULL && x->begun) {
		loop_untimer(&x->forget);
		keep_for_now(x);
	} else {
		dispose_stream(x);
	}
}

void http_stream_resume(struct http_stream *x, struct http_conn *c, uint64_t after)
{
	assert(x->begun && x->session != NULL);
	struct http_conn *old = detach_conn(x);

	if (old != NULL) {
		http_conn_stream_end(old);
	}
	loop_untimer(&x->forget);
	x->conn = c;
	c->stream = x;
	http_conn_stream(c, "");
	for (const struct http_event *e = x->first; e != NULL; e = e->next) {
		if (e->number > after) {
			http_conn_event(c, e->text, e->len);
		}
	}
	if (x->over) {
		http_conn_stream_end(detach_conn(x));
		keep_for_now(x);
	}
}
