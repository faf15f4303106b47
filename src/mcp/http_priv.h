/* http_priv.h - what the files of the HTTP transport share.
 *
 *   http.c          the listening socket, new connections
 *   http_conn.c     one connection: a request in, an answer or a stream out, the next
 *   http_check.c    everything that a request's head alone decides
 *   http_post.c     POST, GET, DELETE
 *   http_stream.c   the messages of one request, over one connection or several
 *   http_session.c  the sessions of the legacy era
 *
 * A stream is what the protocol sees (struct mcp_out). In the modern era it ends with its
 * connection. In the legacy era it outlives the connection, and the client can resume it.
 *
 * The protocol calls send() and end(). Inside of them nothing may be freed that the protocol
 * still holds, and no connection: that happens later, from the loop. */
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
	char host[64]; /* another name that Host may have */
	uint16_t port;
	bool has_token;
	uint8_t token[SHA256_BYTES]; /* digest of the token */
	char principal[32];          /* of modern clients: the holder of the token */
	struct loop_watch *watch;
	struct loop_timer *pause, *sweep;
	struct http_conn *conns; /* newest first */
	size_t n_conns;
	struct http_session *sessions;
	size_t n_sessions;
	struct mcp_peer *modern; /* keeps the tasks of closed connections */
	struct bucket requests;  /* limits the rate of requests */
	struct bucket failures;  /* limits the rate of 401 answers to wrong tokens */
	size_t body_bytes;       /* sum of all unread request bodies */
	size_t kept_bytes;       /* sum of all kept events */
};

/* ---- connections ------------------------------------------------------------- */

enum http_conn_state {
	CONN_HEAD,   /* reads the head of the next request, if one comes */
	CONN_BODY,   /* reads its body */
	CONN_WAITS,  /* waits for the answer */
	CONN_STREAM, /* sends events */
	CONN_LINGER, /* everything is sent; reads until the client closes, so that no reset loses
	                the answer */
};

struct http_conn {
	struct mcp_http *http;
	struct http_conn *prev, *next;
	int fd;
	struct loop_watch *watch;
	enum http_conn_state state;
	bool close;   /* close after this answer */
	bool broken;  /* the loop must free it */
	bool reading; /* the head has begun */
	struct http_request request;
	struct http_body framing;
	struct buf body;
	size_t head_len; /* bytes of the head in `data` */
	size_t tail;     /* offset of the next request in `data` */
	size_t len;
	struct queue queue;
	uint64_t sent;              /* bytes sent so far */
	uint64_t promised;          /* bytes that must be sent when `slow` fires */
	struct http_stream *stream; /* NULL: none */
	struct mcp_peer *peer;      /* sends its modern requests; NULL: none yet */
	struct loop_timer *phase;   /* time limit of the current state, or the next keep-alive */
	struct loop_timer *slow;    /* fires if the client does not read */
	struct loop_timer *later;
	char data[HTTP_MAX_HEAD + HTTP_READ_BYTES];
};

void http_conn_new(struct mcp_http *h, int fd); /* takes the fd */
void http_conn_free(struct http_conn *c);       /* accepts NULL; a legacy stream stays resumable */

/* `fields` are further header lines, each with its CRLF, or "". */
void http_conn_answer(struct http_conn *c, int status, const char *fields, const char *json,
                      size_t len);
/* An error outside of any call; `id` is NULL if it is unknown. */
void http_conn_refuse(struct http_conn *c, int status, const char *id, int code, const char *why);
/* sends the head of an event stream */
void http_conn_stream(struct http_conn *c, const char *fields);
/* sends one event, already formatted */
void http_conn_event(struct http_conn *c, const char *text, size_t len);
void http_conn_stream_end(struct http_conn *c);
void http_conn_break(struct http_conn *c);       /* marks it; the loop frees it soon */
void http_conn_forget_body(struct http_conn *c); /* frees the body, which has been parsed */

/* ---- checks ------------------------------------------------------------------ */

/* Returns 0, or the status to answer with and the reason. */
int http_check_head(struct mcp_http *h, const struct http_request *r, const char **ret_why);
/* NULL, or how the headers of a modern request differ from its body. */
const char *http_check_mirror(const struct http_request *r, const struct mcp_message *m);
/* Whether the field's value equals these bytes, plain or as "=?base64?...?=". */
bool http_field_says(struct span value, const char *body, size_t len);
/* Copies the field's value into `out` (size bytes); NULL: missing, or too long. */
const char *http_field(const struct http_request *r, const char *name, char *out, size_t size);

/* ---- requests ---------------------------------------------------------------- */

void http_dispatch(struct http_conn *c); /* handles a complete request */

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
	struct http_conn *conn;          /* NULL: lost */
	struct mcp_peer *peer;           /* of the session, or of the connection */
	struct http_session *session;    /* NULL: modern */
	struct http_stream *prev, *next; /* in the session; newest first */
	uint64_t number;                 /* within the session */
	uint64_t events;                 /* sent so far */
	uint64_t lost;                   /* number of the last event that did not fit; 0: none */
	bool news;       /* opened by GET: carries messages that belong to no request */
	bool initialize; /* its response begins a session */
	bool begun;      /* events have been sent */
	bool answered;   /* answered without a stream */
	bool over;       /* complete */
	struct http_event *first, *last; /* kept events */
	size_t kept;
	struct loop_timer *forget;
};

/* A stream on `c` for a request (session NULL: modern, of c->peer) or for news. NULL: out of
 * memory. */
struct http_stream *http_stream_new(struct http_conn *c, struct http_session *s, bool news);
void http_stream_open(struct http_stream *x); /* sends the head of the stream */
void http_stream_put(struct http_stream *x, enum mcp_kind kind, const char *json, size_t len);
void http_stream_lost(struct http_stream *x); /* its connection is gone */
/* Moves the stream to `c` and sends the events after number `after` again. */
void http_stream_resume(struct http_stream *x, struct http_conn *c, uint64_t after);
/* The client is gone for good: cancels the call if it is still running, and closes the
 * connection if there is one. */
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
	uint64_t numbers; /* the last stream number */
	uint64_t used_ms;
	struct loop_timer *later;
};

/* NULL: too many sessions, or out of memory */
struct http_session *http_session_new(struct mcp_http *h);
struct http_session *http_session_find(struct mcp_http *h,
                                       const char *id); /* NULL: not found; counts as use */
struct http_stream *http_session_stream(const struct http_session *s, uint64_t number);
void http_session_end_soon(struct http_session *s); /* for calls from inside the protocol */
void http_session_free(struct http_session *s);     /* cancels its calls */
/* frees the oldest broken stream if there are too many */
void http_session_trim(struct http_session *s);

#endif
