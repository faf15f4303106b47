/* http_conn.c - one connection, which serves one request after another.
 *
 * While a request is answered, nothing is read, and a second request waits in the kernel. If
 * the client closes the connection meanwhile, this is noticed. Every state has a time limit,
 * so that a slow client cannot keep resources. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "mcp/http_priv.h"

#define HEAD_MS   10000
#define BODY_MS   30000
#define IDLE_MS   60000
#define SLOW_MS   30000 /* the client must read PROMISED bytes, or all that wait, in this time */
#define LINGER_MS 2000
#define ALIVE_MS  15000 /* time between keep-alives of a stream */
#define PROMISED  ((size_t)64 * 1024)

static void process_input(struct http_conn *c);
static void on_ready(void *arg, uint32_t events);

static const struct {
	int status;
	const char *text;
	const char *field; /* extra header line for this status */
} STATUS[] = {
	{ 200, "OK", "" },
	{ 202, "Accepted", "" },
	{ 400, "Bad Request", "" },
	{ 401, "Unauthorized", "WWW-Authenticate: Bearer realm=\"mcp\"\r\n" },
	{ 403, "Forbidden", "" },
	{ 404, "Not Found", "" },
	{ 405, "Method Not Allowed", "Allow: POST, GET, DELETE\r\n" },
	{ 406, "Not Acceptable", "" },
	{ 408, "Request Timeout", "" },
	{ 413, "Content Too Large", "" },
	{ 415, "Unsupported Media Type", "" },
	{ 417, "Expectation Failed", "" },
	{ 429, "Too Many Requests", "Retry-After: 1\r\n" },
	{ 431, "Request Header Fields Too Large", "" },
	{ 500, "Internal Server Error", "" },
	{ 503, "Service Unavailable", "Retry-After: 1\r\n" },
	{ 505, "HTTP Version Not Supported", "" },
};

/* ---- timers ------------------------------------------------------------------ */

static void on_later(void *arg)
{
	struct http_conn *c = arg;

	if (c->broken) {
		http_conn_free(c);
	} else if (c->state == CONN_HEAD) {
		process_input(c);
	}
}

static void process_soon(struct http_conn *c)
{
	if (c->later == NULL) {
		(void)loop_after(c->http->loop, 0, on_later, c, &c->later);
	}
}

void http_conn_break(struct http_conn *c)
{
	c->broken = true;
	process_soon(c);
}

static void on_phase_timeout(void *arg)
{
	struct http_conn *c = arg;

	if ((c->state == CONN_HEAD && c->len > 0) || c->state == CONN_BODY) {
		http_conn_refuse(c, 408, NULL, MCP_E_REQUEST, "the request took too long");
	} else {
		http_conn_free(c);
	}
}

static void start_phase(struct http_conn *c, uint64_t ms, loop_fn *fn)
{
	loop_untimer(&c->phase);
	if (loop_after(c->http->loop, ms, fn, c, &c->phase) < 0) {
		http_conn_break(c);
	}
}

static void send_keepalive(void *arg)
{
	struct http_conn *c = arg;

	if (queue_left(&c->queue) == 0) {
		http_conn_event(c, ":\n\n", 3);
	}
	start_phase(c, ALIVE_MS, send_keepalive);
}

/* ---- output ------------------------------------------------------------------ */

static void watch_slow(struct http_conn *c);

static void on_slow_timeout(void *arg)
{
	struct http_conn *c = arg;

	if (c->sent < c->promised) {
		http_conn_free(c);
	} else {
		watch_slow(c);
	}
}

static void watch_slow(struct http_conn *c)
{
	size_t left = queue_left(&c->queue);

	c->promised = c->sent + (left < PROMISED ? left : PROMISED);
	if (loop_after(c->http->loop, SLOW_MS, on_slow_timeout, c, &c->slow) < 0) {
		http_conn_break(c);
	}
}

static uint32_t wanted_events(const struct http_conn *c)
{
	uint32_t out = queue_left(&c->queue) > 0 ? EPOLLOUT : 0;

	switch (c->state) {
	/* The next request is read only when the last answer is sent. */
	case CONN_HEAD:
	case CONN_LINGER:
		return out != 0 ? out : EPOLLIN;
	case CONN_BODY:
		return EPOLLIN | out;
	case CONN_WAITS:
	case CONN_STREAM:
		break;
	}
	return EPOLLRDHUP | out;
}

static void flush_queue(struct http_conn *c)
{
	size_t left = queue_left(&c->queue);

	if (c->broken) {
		return;
	}
	if (queue_flush(&c->queue, c->fd) < 0) {
		http_conn_break(c);
		return;
	}
	c->sent += left - queue_left(&c->queue);
	if (queue_left(&c->queue) == 0) {
		loop_untimer(&c->slow);
		if (c->state == CONN_LINGER) {
			(void)shutdown(c->fd, SHUT_WR);
		}
	} else if (c->slow == NULL) {
		watch_slow(c);
	}
	loop_rewatch(c->watch, wanted_events(c));
}

/* Returns true if a message of `len` bytes must not be queued. One client may have a queue of
 * MAX_MCP_QUEUE bytes, but the sum over all clients is limited, too. Messages shorter than
 * PROMISED are always queued. */
static bool too_much_waits(const struct mcp_http *h, size_t len)
{
	size_t sum = len;

	for (const struct http_conn *c = LIST_FIRST(&h->conns); c != NULL && len >= PROMISED;
	     c = LIST_NEXT(c, link)) {
		sum += queue_left(&c->queue);
	}
	return sum > MAX_HTTP_QUEUED;
}

static void put_bytes(struct http_conn *c, const char *data, size_t len)
{
	if (c->broken) {
		return;
	}
	if (len > MAX_MCP_QUEUE || queue_left(&c->queue) > MAX_MCP_QUEUE - len ||
	    too_much_waits(c->http, len) || queue_add(&c->queue, data, len) < 0) {
		http_conn_break(c);
	}
}

static void put_head(struct http_conn *c, int status, const char *more)
{
	auto_buf head = BUF(HTTP_MAX_HEAD);
	size_t i = 0;

	while (i < ARRAY_LEN(STATUS) - 1 && STATUS[i].status != status) {
		i++;
	}
	buf_addf(&head, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\n%s%s%s\r\n", status,
	         STATUS[i].text, STATUS[i].field, c->close ? "Connection: close\r\n" : "", more);
	if (head.failed) {
		http_conn_break(c);
		return;
	}
	put_bytes(c, head.data, head.len);
}

void http_conn_forget_body(struct http_conn *c)
{
	assert(c->http->body_bytes >= c->body.len);
	c->http->body_bytes -= c->body.len;
	buf_done(&c->body);
	buf_init(&c->body, MAX_MCP_MESSAGE);
}

/* Called when the answer is complete: waits for the next request, or closes the connection. */
static void next_request(struct http_conn *c)
{
	http_conn_forget_body(c);
	c->stream = NULL;
	c->request = (struct http_request){ 0 };
	c->reading = false;
	if (c->close) {
		c->state = CONN_LINGER;
		c->len = 0;
		start_phase(c, LINGER_MS, on_phase_timeout);
	} else {
		c->state = CONN_HEAD;
		memmove(c->data, c->data + c->tail, c->len - c->tail);
		c->len -= c->tail;
		start_phase(c, IDLE_MS, on_phase_timeout);
	}
	c->tail = 0;
	flush_queue(c);
	if (c->len > 0 && queue_left(&c->queue) == 0) {
		process_soon(c);
	}
}

void http_conn_answer(struct http_conn *c, int status, const char *fields, const char *json,
                      size_t len)
{
	char more[256];

	(void)snprintf(more, sizeof more, "%sContent-Length: %zu\r\n%s",
	               json != NULL ? "Content-Type: application/json\r\n" : "", len, fields);
	put_head(c, status, more);
	if (len > 0) {
		put_bytes(c, json, len);
	}
	next_request(c);
}

void http_conn_refuse(struct http_conn *c, int status, const char *id, int code, const char *why)
{
	auto_buf text = BUF(MAX_MCP_MESSAGE);

	mcp_error_text(&text, id, code, why, NULL);
	if (c->state == CONN_HEAD || c->state == CONN_BODY) {
		c->close = true; /* the rest of the request is not read */
	}
	http_conn_answer(c, status, "", text.failed ? NULL : text.data, text.failed ? 0 : text.len);
}

void http_conn_stream(struct http_conn *c, const char *fields)
{
	char more[256];

	(void)snprintf(more, sizeof more,
	               "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
	               "X-Accel-Buffering: no\r\n%s",
	               fields);
	put_head(c, 200, more);
	http_conn_forget_body(c);
	c->state = CONN_STREAM;
	start_phase(c, ALIVE_MS, send_keepalive);
	flush_queue(c);
}

void http_conn_event(struct http_conn *c, const char *text, size_t len)
{
	char size[24];

	put_bytes(c, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", len));
	put_bytes(c, text, len);
	put_bytes(c, "\r\n", 2);
	flush_queue(c);
}

void http_conn_stream_end(struct http_conn *c)
{
	put_bytes(c, "0\r\n\r\n", 5);
	next_request(c);
}

/* ---- input ------------------------------------------------------------------- */

/* Adds the bytes to the body. `body_bytes` counts the bytes of all bodies; http_conn_forget_body()
 * subtracts them. A small body is accepted even if large bodies have used up the limit. */
static bool add_body(struct http_conn *c, struct span piece)
{
	bool small = c->body.len + piece.len <= MAX_MCP_SMALL;

	if (!small && c->http->body_bytes + piece.len > MAX_HTTP_BODIES) {
		return false;
	}
	buf_add(&c->body, piece.s, piece.len);
	if (c->body.failed) {
		return false;
	}
	c->http->body_bytes += piece.len;
	return true;
}

static void take_body(struct http_conn *c)
{
	size_t at = c->head_len, used;
	struct span piece;
	int verdict;

	while ((verdict = http_body_feed(&c->framing, c->data + at, c->len - at, &used, &piece)) ==
	       HTTP_PIECE) {
		if (!add_body(c, piece)) {
			verdict = 503;
			break;
		}
		at += used;
	}
	if (verdict == HTTP_MORE) {
		c->len = c->head_len;
	} else if (verdict == HTTP_DONE) {
		c->tail = at + used;
		c->state = CONN_WAITS;
		loop_untimer(&c->phase);
		loop_rewatch(c->watch, wanted_events(c));
		http_dispatch(c);
	} else {
		http_conn_refuse(
		        c, verdict, NULL, MCP_E_REQUEST,
		        verdict == 413 ? "the message is longer than 4 MiB"
		        : verdict == 503
		                ? "the server is receiving too many large requests; try again"
		                : "the request's body is malformed");
	}
}

static void take_head(struct http_conn *c)
{
	const char *why = "not a valid HTTP/1.1 request";
	int verdict = http_request_head(&c->request, c->data, c->len, &c->head_len);

	if (verdict == HTTP_MORE) {
		if (!c->reading && c->len > 0) {
			c->reading = true;
			start_phase(c, HEAD_MS, on_phase_timeout);
		}
		return;
	}
	if (verdict == HTTP_DONE) {
		c->close |= c->request.close;
		verdict = http_check_head(c->http, &c->request, &why);
	}
	if (verdict == 0) {
		verdict = http_body_init(&c->framing, &c->request, MAX_MCP_MESSAGE);
		why = "the message is longer than 4 MiB";
	}
	if (verdict > HTTP_PIECE) {
		http_conn_refuse(c, verdict, NULL, MCP_E_REQUEST, why);
		return;
	}
	c->state = CONN_BODY;
	start_phase(c, BODY_MS, on_phase_timeout);
	if (c->request.expects && c->len == c->head_len && verdict == HTTP_MORE) {
		put_bytes(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
		flush_queue(c);
	}
	take_body(c);
}

static void process_input(struct http_conn *c)
{
	if (c->state == CONN_HEAD) {
		take_head(c);
	} else if (c->state == CONN_BODY) {
		take_body(c);
	}
}

/* Reads more input. Returns false if the connection is gone. */
static bool fill_buffer(struct http_conn *c)
{
	ssize_t n = read(c->fd, c->data + c->len, sizeof c->data - c->len);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		http_conn_free(c);
		return false;
	}
	if (n > 0 && c->state != CONN_LINGER) {
		c->len += (size_t)n;
	}
	return true;
}

static void on_ready(void *arg, uint32_t events)
{
	struct http_conn *c = arg;

	bool gone = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;

	/* A client that closes its side while it waits for an answer cannot receive it. */
	if (c->broken || (gone && (c->state == CONN_WAITS || c->state == CONN_STREAM))) {
		http_conn_free(c);
		return;
	}
	if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
		flush_queue(c);
	}
	if (c->broken) {
		return; /* the loop frees the connection soon */
	}
	if ((wanted_events(c) & EPOLLIN) == 0) {
		return; /* the next request must wait for the answer */
	}
	if ((events & EPOLLOUT) == 0 || gone || (events & EPOLLIN) != 0) {
		if (!fill_buffer(c)) {
			return;
		}
	}
	if (c->len > 0) {
		process_input(c);
	}
}

/* ---- start and end ------------------------------------------------------------- */

void http_conn_new(struct mcp_http *h, int fd)
{
	struct http_conn *c = malloc(sizeof *c);

	if (c == NULL) {
		(void)close(fd);
		return;
	}
	memset(c, 0, offsetof(struct http_conn, data));
	c->http = h;
	c->fd = fd;
	buf_init(&c->body, MAX_MCP_MESSAGE);
	LIST_INSERT_HEAD(&h->conns, c, link);
	h->n_conns++;
	if (loop_watch(h->loop, fd, EPOLLIN, on_ready, c, &c->watch) < 0) {
		http_conn_free(c);
		return;
	}
	start_phase(c, HEAD_MS, on_phase_timeout);
}

void http_conn_free(struct http_conn *c)
{
	if (c == NULL) {
		return;
	}
	struct mcp_http *h = c->http;
	struct http_stream *x = steal_ptr(&c->stream);
	struct mcp_peer *peer = c->peer;

	loop_unwatch(&c->watch);
	loop_untimer(&c->phase);
	loop_untimer(&c->slow);
	loop_untimer(&c->later);
	own_close(&c->fd);
	LIST_REMOVE(c, link);
	h->n_conns--;
	http_conn_forget_body(c);
	queue_clear(&c->queue);
	free(c);
	if (x != NULL) {
		x->conn = NULL;
		http_stream_lost(x);
	}
	mcp_peer_leave(peer, h->modern);
}
