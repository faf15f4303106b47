/* http_priv.h - declarations that the files of the HTTP transport share.
 *
 *   http.c          the listening socket, new connections
 *   http_conn.c     one connection: reads a request, sends its answer or stream, reads the next
 *   http_check.c    all checks that need only the head of a request
 *   http_post.c     POST, GET, DELETE
 *   http_stream.c   the messages of one request, over one connection or several
 *   http_session.c  the sessions of the legacy era
 *
 * The protocol sees a stream (struct mcp_out). In the modern era a stream ends with its connection.
 * In the legacy era it remains after the connection has ended, and the client can resume it.
 *
 * The protocol calls send() and end() of a stream. These must not free anything that the
 * protocol still uses. They must not free a connection either: the loop does this later. */
#ifndef MCP_HTTP_PRIV_H
#define MCP_HTTP_PRIV_H

#include <sys/queue.h>

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
	char host[64]; /* a further name that the Host header may contain */
	uint16_t port;
	bool has_token;
	uint8_t token[SHA256_BYTES]; /* digest of the token */
	char principal[32];          /* principal of all modern clients, made from the token */
	struct loop_watch *watch;
	struct loop_timer *pause, *sweep;
	LIST_HEAD(http_conns, http_conn) conns; /* newest first */
	size_t n_conns;
	LIST_HEAD(http_session_list, http_session) sessions;
	size_t n_sessions;
	struct mcp_peer *modern; /* takes over the tasks of connections that have closed */
	struct bucket requests;  /* limits the rate of requests */
	struct bucket failures;  /* limits the rate of answers to wrong tokens (401) */
	size_t body_bytes;       /* bytes of all bodies that are not processed yet */
	size_t kept_bytes;       /* bytes of all kept events */
};

/* ---- connections ------------------------------------------------------------- */

enum http_conn_state {
	CONN_HEAD,   /* reads the head of the next request, or waits for it */
	CONN_BODY,   /* reads the body of the request */
	CONN_WAITS,  /* waits for the answer */
	CONN_STREAM, /* sends events */
	/* Everything is sent; reads until the client closes, because closing first could reset
	 * the connection and lose the answer. */
	CONN_LINGER,
};

struct http_conn {
	struct mcp_http *http;
	LIST_ENTRY(http_conn) link;
	int fd;
	struct loop_watch *watch;
	enum http_conn_state state;
	bool close;   /* close the connection after this answer */
	bool broken;  /* the loop must free it */
	bool reading; /* a part of the next head has been read */
	struct http_request request;
	struct http_body framing;
	struct buf body;
	size_t head_len; /* bytes of the head in `data` */
	size_t tail;     /* offset of the next request in `data` */
	size_t len;
	struct queue queue;
	uint64_t sent;              /* bytes sent so far */
	uint64_t promised;          /* `sent` must have reached this value when `slow` fires */
	struct http_stream *stream; /* NULL: none */
	struct mcp_peer *peer;      /* the sender of its modern requests; NULL: none yet */
	struct loop_timer *phase;   /* time limit of the current state, or the next keep-alive */
	struct loop_timer *slow;    /* fires if the client does not read what is sent */
	struct loop_timer *later;
	char data[HTTP_MAX_HEAD + HTTP_READ_BYTES];
};

void http_conn_new(struct mcp_http *h, int fd); /* takes the fd */
/* Accepts NULL; keeps a legacy stream for a resume. */
void http_conn_free(struct http_conn *c);

/* Sends an answer. `fields` are further header lines, each with its CRLF, or "". */
void http_conn_answer(struct http_conn *c, int status, const char *fields, const char *json,
                      size_t len);
/* Sends an error that does not belong to a call. `id` is NULL if it is not known. */
void http_conn_refuse(struct http_conn *c, int status, const char *id, int code, const char *why);
/* Sends the head of an event stream. */
void http_conn_stream(struct http_conn *c, const char *fields);
/* Sends one event. `text` is already formatted. */
void http_conn_event(struct http_conn *c, const char *text, size_t len);
void http_conn_stream_end(struct http_conn *c);
void http_conn_break(struct http_conn *c);       /* marks the connection; the loop frees it soon */
void http_conn_forget_body(struct http_conn *c); /* frees the body after parsing */

/* ---- checks ------------------------------------------------------------------ */

/* Returns 0 if the request passes. Otherwise returns the status to answer with, and the reason in
 * *ret_why. */
int http_check_head(struct mcp_http *h, const struct http_request *r, const char **ret_why);
/* Returns NULL if the headers of a modern request agree with its body. Otherwise says what is
 * different. */
const char *http_check_mirror(const struct http_request *r, const struct mcp_message *m);
/* Returns true if the value of the field equals these bytes, plain or as "=?base64?...?=". */
bool http_field_says(struct span value, const char *body, size_t len);
/* Copies the value of the field into `out` (size bytes) and returns `out`. NULL: the field is
 * missing or too long. */
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
	struct mcp_out to; /* must be the first member */
	struct mcp_http *http;
	struct http_conn *conn; /* NULL: the connection is lost */
	struct mcp_peer *peer;  /* peer of the session or, in the modern era, of the connection */
	struct http_session *session; /* NULL: modern era */
	LIST_ENTRY(http_stream) link; /* links the session's streams, newest first */
	uint64_t number;              /* number of the stream in the session */
	uint64_t events;              /* number of events sent so far */
	/* Number of the last event that was dropped because it did not fit; 0: none. */
	uint64_t lost;
	bool news;       /* opened by GET; for messages that belong to no request */
	bool initialize; /* the stream of an initialize request, whose response creates a session */
	bool begun;      /* the head of an event stream was sent */
	bool answered;   /* the answer was one JSON text, not a stream of events */
	bool over;       /* no more messages follow */
	struct http_event *first, *last; /* events that are kept for a client that resumes */
	size_t kept;
	struct loop_timer *forget;
};

/* Makes a stream on `c` for a request, or for news. `session` is NULL in the modern era; the stream
 * then belongs to c->peer. Returns NULL if there is no memory. */
struct http_stream *http_stream_new(struct http_conn *c, struct http_session *s, bool news);
void http_stream_open(struct http_stream *x); /* sends the head of the stream */
void http_stream_put(struct http_stream *x, enum mcp_kind kind, const char *json, size_t len);
void http_stream_lost(struct http_stream *x); /* must be called when its connection is gone */
/* Moves the stream to `c`, and sends all kept events after number `after` again. */
void http_stream_resume(struct http_stream *x, struct http_conn *c, uint64_t after);
/* Called when the client cannot come back: cancels the call if it is still running, and closes the
 * connection if there is one. */
void http_stream_free(struct http_stream *x);

/* ---- sessions ---------------------------------------------------------------- */

#define HTTP_SESSION_ID 33 /* length with NUL */

struct http_session {
	struct mcp_out news; /* must be the first member */
	struct mcp_http *http;
	LIST_ENTRY(http_session) link;
	char id[HTTP_SESSION_ID];
	struct mcp_peer *peer;
	LIST_HEAD(http_stream_list, http_stream) streams;
	uint64_t numbers; /* number of the newest stream */
	uint64_t used_ms;
	struct loop_timer *later;
};

/* Returns NULL if there are too many sessions, or there is no memory. */
struct http_session *http_session_new(struct mcp_http *h);
/* Finds the session and marks it as used. Returns NULL if there is none. */
struct http_session *http_session_find(struct mcp_http *h, const char *id);
struct http_stream *http_session_stream(const struct http_session *s, uint64_t number);
/* Makes the loop end the session later. For callers that run inside a function of the protocol.
 */
void http_session_end_soon(struct http_session *s);
void http_session_free(struct http_session *s); /* cancels the session's calls */
/* If the session has too many streams, frees the oldest one that has no connection. */
void http_session_trim(struct http_session *s);

#endif
