/* http_priv.h - what the files of the HTTP transport share.
 *
 *   http.c          where it listens, who comes in
 *   http_conn.c     one connection: a request in, an answer or a stream out, the next
 *   http_check.c    who may ask, and how: everything that a head alone decides
 *   http_post.c     what is asked: POST, GET, DELETE
 *   http_stream.c   where the messages for one request go, over one connection or more
 *   http_session.c  the sessions of the legacy era
 *
 * A stream is what the protocol sees (struct mcp_out). It has a connection as long as
 * that lives; in the modern era it ends with it, in the legacy era it waits for the
 * client to come back. Inside of send() and end(), which the protocol calls, nothing is
 * freed that the protocol holds, and no connection: that waits for the loop. */
#ifndef MCP_HTTP_PRIV_H
#define MCP_HTTP_PRIV_H

#include "base/buf.h"
#include "base/sha256.h"
#include "base/bucket.h"
#include "mcp/link.h"
#include "mcp/queue.h"
#include "mcp/transport.h"
#include "wire/http_request.h"

struct http_conn;
struct http_stream;
struct http_session;

#define HTTP_URL        80
#define HTTP_READ_BYTES (16 * 1024)

struct mcp_http {
	struct mcp_server *server;
	struct loop *loop;
	int fd;
	char url[HTTP_URL];
	char host[64]; /* of the address: another name that Host may have */
	uint16_t port;
	bool has_token;
	uint8_t token[SHA256_BYTES]; /* digest of it */
	char principal[32];          /* of the modern era: whoever has the token */
	struct loop_watch *watch;
	struct loop_timer *pause, *sweep;
	struct http_conn *conns; /* the newest first */
	size_t n_conns;
	struct http_session *sessions;
	size_t n_sessions;
	struct mcp_peer *modern; /* has the tasks whose connection is gone */
	struct bucket requests;  /* how many may come */
	struct bucket failures;  /* how many wrong tokens are answered as such */
	size_t body_bytes;       /* of all bodies that are coming in */
	size_t kept_bytes;       /* of all events that are kept */
};

/* ---- connections ------------------------------------------------------------- */

enum http_conn_state {
	CONN_HEAD,   /* of the next request, or of none */
	CONN_BODY,   /* of it */
	CONN_WAITS,  /* for the answer */
	CONN_STREAM, /* events go out */
	CONN_LINGER, /* all is said; it is read until its end, so that it gets to hear it */
};

struct http_conn {
	struct mcp_http *http;
	struct http_conn *prev, *next;
	int fd;
	struct loop_watch *watch;
	enum http_conn_state state;
	bool close;   /* after this answer */
	bool broken;  /* to be freed from the loop */
	bool reading; /* the head has begun */
	struct http_request request;
	struct http_body framing;
	struct buf body;
	size_t head_len; /* bytes of `data` */
	size_t tail;     /* where the next request begins in it */
	size_t len;
	struct queue queue;
	uint64_t sent;              /* bytes, so far */
	uint64_t promised;          /* so many of them when `slow` comes */
	struct http_stream *stream; /* that it carries; NULL: none */
	struct mcp_peer *peer;      /* of its modern requests; NULL: none yet */
	struct loop_timer *phase;   /* what it is doing takes too long; or a sign of life is due */
	struct loop_timer *slow;    /* it does not read */
	struct loop_timer *later;
	char data[HTTP_MAX_HEAD + HTTP_READ_BYTES];
};

void http_conn_new(struct mcp_http *h, int fd); /* takes it */
void http_conn_free(struct http_conn *c);       /* accepts NULL; its stream lives on, or not */

/* `fields` are further lines of the head, each with its CRLF, or "". */
void http_conn_answer(struct http_conn *c, int status, const char *fields, const char *json,
                      size_t len);
/* An error that is none of a call: with an id where it is known. */
void http_conn_refuse(struct http_conn *c, int status, const char *id, int code, const char *why);
void http_conn_stream(struct http_conn *c, const char *fields); /* the head of a stream of events */
void http_conn_event(struct http_conn *c, const char *text, size_t len); /* one, as it is written */
void http_conn_stream_end(struct http_conn *c);
void http_conn_break(struct http_conn *c);       /* to be freed soon */
void http_conn_forget_body(struct http_conn *c); /* it has been read */

/* ---- checks ------------------------------------------------------------------ */

/* 0, or the status to answer with, and why. */
int http_check_head(struct mcp_http *h, const struct http_request *r, const char **ret_why);
/* NULL, or how the headers of a modern request differ from its body. */
const char *http_check_mirror(const struct http_request *r, const struct mcp_message *m);
/* Whether the field's value is these bytes: as they are, or as "=?base64?...?=". */
bool http_field_says(struct span value, const char *body, size_t len);
/* The field as text in `out` (size bytes); NULL: there is none, or it does not fit. */
const char *http_field(const struct http_request *r, const char *name, char *out, size_t size);

/* ---- requests ---------------------------------------------------------------- */

void http_dispatch(struct http_conn *c); /* a request is complete, and may be asked */

/* ---- streams ----------------------------------------------------------------- */

struct http_event {
	struct http_event *next;
	uint64_t number;
	size_t len;
	char text[];
};

struct http_stream {
	struct mcp_out to; /* first */
	struct mcp_http *http;
	struct http_conn *conn;          /* NULL: it broke */
	struct mcp_peer *peer;           /* the session's, or the connection's */
	struct http_session *session;    /* NULL: modern */
	struct http_stream *prev, *next; /* of the session; the newest first */
	uint64_t number;                 /* in the session */
	uint64_t events;                 /* so far */
	uint64_t lost;                   /* the last that should have been kept; 0: none */
	bool news;                       /* of a GET: what belongs to no request */
	bool initialize;                 /* its response begins a session */
	bool begun;                      /* as a stream: events have gone out */
	bool answered;                   /* without one */
	bool over;                       /* nothing more comes */
	struct http_event *first, *last; /* kept */
	size_t kept;
	struct loop_timer *forget;
};

/* On `c`, for a request (session NULL: modern, of c->peer), or for news. NULL: no memory. */
struct http_stream *http_stream_new(struct http_conn *c, struct http_session *s, bool news);
void http_stream_open(struct http_stream *x); /* as a stream, at once */
void http_stream_put(struct http_stream *x, enum mcp_kind kind, const char *json, size_t len);
void http_stream_lost(struct http_stream *x); /* its connection is gone */
/* `c` is to carry it from now on; what came after event `after` is said again. */
void http_stream_resume(struct http_stream *x, struct http_conn *c, uint64_t after);
/* Whoever asked is gone for good: canceled, where it is not over; its connection, if
 * there is one, is closed. */
void http_stream_free(struct http_stream *x);

/* ---- sessions ---------------------------------------------------------------- */

#define HTTP_SESSION_ID 33 /* with NUL */

struct http_session {
	struct mcp_out news; /* first */
	struct mcp_http *http;
	struct http_session *prev, *next;
	char id[HTTP_SESSION_ID];
	struct mcp_peer *peer;
	struct http_stream *streams;
	uint64_t numbers; /* of streams */
	uint64_t used_ms;
	struct loop_timer *later;
};

struct http_session *http_session_new(struct mcp_http *h); /* NULL: no room, no memory */
struct http_session *http_session_find(struct mcp_http *h,
                                       const char *id); /* NULL; counts as use */
struct http_stream *http_session_stream(const struct http_session *s, uint64_t number);
void http_session_end_soon(struct http_session *s); /* from inside of the protocol */
void http_session_free(struct http_session *s);     /* its calls are canceled */
void http_session_trim(struct http_session *s);     /* too many broken streams: the oldest go */

#endif
