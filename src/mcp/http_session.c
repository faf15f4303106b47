/* http_session.c - the sessions of the legacy era: how a session is named, found and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "base/limits.h"
#include "mcp/http_priv.h"
#include "os/clock.h"

#define IDLE_MS  (60ULL * 60 * 1000)
#define SWEEP_MS (60ULL * 1000)

/* Returns whether a client is connected or a call is running. */
static bool is_busy(const struct http_session *s)
{
	for (const struct http_stream *x = LIST_FIRST(&s->streams); x != NULL;
	     x = LIST_NEXT(x, link)) {
		if (x->conn != NULL || (!x->news && !x->over)) {
			return true;
		}
	}
	return s->later != NULL;
}

static void sweep_sessions(void *arg)
{
	struct mcp_http *h = arg;
	uint64_t now = clock_ms();

	for (struct http_session *s = LIST_FIRST(&h->sessions), *next; s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (is_busy(s)) {
			s->used_ms = now;
		} else if (now - s->used_ms > IDLE_MS) {
			http_session_free(s);
		}
	}
	if (!LIST_EMPTY(&h->sessions)) {
		(void)loop_after(h->loop, SWEEP_MS, sweep_sessions, h, &h->sweep);
	}
}

/* Frees the session that has been idle for the longest time. */
static bool make_room(struct mcp_http *h)
{
	struct http_session *oldest = NULL;

	for (struct http_session *s = LIST_FIRST(&h->sessions); s != NULL; s = LIST_NEXT(s, link)) {
		if (!is_busy(s) && (oldest == NULL || s->used_ms < oldest->used_ms)) {
			oldest = s;
		}
	}
	if (oldest != NULL) {
		http_session_free(oldest);
	}
	return oldest != NULL;
}

/* Sends a message that belongs to no request. It goes to only one stream: the newest connected one,
 * or else the newest that a client can resume. */
static void news_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                      size_t len)
{
	struct http_session *s = (struct http_session *)o;
	struct http_stream *to = NULL;

	(void)status;
	for (struct http_stream *x = LIST_FIRST(&s->streams); x != NULL; x = LIST_NEXT(x, link)) {
		if (x->news && (to == NULL || (to->conn == NULL && x->conn != NULL))) {
			to = x;
		}
	}
	if (to != NULL) {
		http_stream_put(to, kind, json, len);
	}
}

static void news_end(struct mcp_out *o)
{
	(void)o; /* news belongs to no request, so there is no stream to end */
}

static int name_session(struct http_session *s)
{
	uint8_t id[16];
	uint64_t who;
	char principal[32];

	if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id ||
	    getrandom(&who, sizeof who, 0) != (ssize_t)sizeof who) {
		return -1;
	}
	hex_encode(id, sizeof id, s->id);
	s->id[HTTP_SESSION_ID - 1] = '\0';
	(void)snprintf(principal, sizeof principal, "session:%016llx", (unsigned long long)who);
	return mcp_peer_new(s->http->server, principal, &s->news, &s->peer);
}

struct http_session *http_session_new(struct mcp_http *h)
{
	if (h->n_sessions >= MAX_HTTP_SESSIONS && !make_room(h)) {
		return NULL;
	}
	struct http_session *s = calloc(1, sizeof *s);

	if (s == NULL) {
		return NULL;
	}
	*s = (struct http_session){ .news = { .send = news_send, .end = news_end },
		                    .http = h,
		                    .used_ms = clock_ms() };
	if (name_session(s) < 0) {
		free(s);
		return NULL;
	}
	LIST_INSERT_HEAD(&h->sessions, s, link);
	h->n_sessions++;
	if (h->sweep == NULL) {
		(void)loop_after(h->loop, SWEEP_MS, sweep_sessions, h, &h->sweep);
	}
	return s;
}

struct http_session *http_session_find(struct mcp_http *h, const char *id)
{
	for (struct http_session *s = LIST_FIRST(&h->sessions); s != NULL; s = LIST_NEXT(s, link)) {
		if (strcmp(s->id, id) == 0 && s->later == NULL) {
			s->used_ms = clock_ms();
			return s;
		}
	}
	return NULL;
}

struct http_stream *http_session_stream(const struct http_session *s, uint64_t number)
{
	struct http_stream *x = LIST_FIRST(&s->streams);

	while (x != NULL && x->number != number) {
		x = LIST_NEXT(x, link);
	}
	return x;
}

void http_session_trim(struct http_session *s)
{
	struct http_stream *oldest = NULL;
	size_t broken = 0;

	for (struct http_stream *x = LIST_FIRST(&s->streams); x != NULL; x = LIST_NEXT(x, link)) {
		if (x->conn == NULL) {
			oldest = x;
			broken++;
		}
	}
	if (broken > MAX_HTTP_STREAMS) {
		http_stream_free(oldest);
	}
}

static void end_now(void *arg)
{
	http_session_free(arg);
}

void http_session_end_soon(struct http_session *s)
{
	if (s->later == NULL) {
		(void)loop_after(s->http->loop, 0, end_now, s, &s->later);
	}
}

void http_session_free(struct http_session *s)
{
	struct mcp_http *h = s->http;

	loop_untimer(&s->later);
	while (!LIST_EMPTY(&s->streams)) {
		http_stream_free(LIST_FIRST(&s->streams));
	}
	mcp_peer_free(s->peer);
	LIST_REMOVE(s, link);
	h->n_sessions--;
	free(s);
}
