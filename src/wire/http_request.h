/* http_request.h - parses one HTTP/1.1 request for skillsandbox's own server.
 *
 * There is no I/O here. http1_head.h judges the lines of the head and is strict wherever two
 * readers could disagree. In addition, some fields may appear only once, chunks may have no
 * extensions and no trailer, and HTTP/1.0 is refused. After a failure, the result is the status of
 * the answer to send. */
#ifndef WIRE_HTTP_REQUEST_H
#define WIRE_HTTP_REQUEST_H

#include "wire/http1_head.h"

#define HTTP_MAX_HEAD   (16 * 1024)
#define HTTP_MAX_FIELDS 64

enum http_verdict {
	HTTP_MORE = 0,  /* more bytes are needed */
	HTTP_DONE = 1,  /* the head, or the body, is complete */
	HTTP_PIECE = 2, /* *ret is a piece of the body */
	                /* Any other value is the status of a refusal: 400, 413, 417, 431 or 505. */
};

struct http_field {
	struct span name, value; /* in the caller's bytes, without surrounding blanks */
};

/* Must be zeroed before each request. */
struct http_request {
	struct http1 lines; /* used: host, port, has_length, length, chunked */
	struct span method, target;
	struct http_field fields[HTTP_MAX_FIELDS];
	size_t n_fields;
	bool close;   /* the connection must be closed after this request */
	bool expects; /* the request has "Expect: 100-continue" */
	size_t seen;  /* private: bytes read so far */
};

/* `data` must begin with the first byte of the request. After HTTP_MORE, call it again with the
 * same bytes and further ones, which may lie elsewhere in memory. With HTTP_DONE, *ret_len is the
 * length of the head, and the spans in `r` point into `data`. */
int http_request_head(struct http_request *r, const char *data, size_t len, size_t *ret_len);

/* Returns the first field of that name (upper and lower case are equal), or NULL. */
const struct span *http_request_field(const struct http_request *r, const char *name);
/* True if the field Accept allows this type ("text/event-stream"). Without Accept every type is
 * allowed. */
bool http_request_accepts(const struct http_request *r, const char *type);

bool http_span_is(struct span s, const char *text);

/* ---- the body ---------------------------------------------------------------- */

struct http_body {
	int state;
	uint64_t left; /* bytes left of the body, or of this chunk */
	uint64_t got;
	uint64_t max;
	unsigned digits;
};

/* Begins a body. Returns HTTP_MORE if there is a body, HTTP_DONE if there is none, or 413 if its
 * length is greater than `max`. */
int http_body_init(struct http_body *b, const struct http_request *r, uint64_t max);
/* Reads *ret_used bytes of `data`. With HTTP_PIECE, *ret is a part of the body among these bytes.
 * Call it again with the rest until it returns HTTP_MORE, HTTP_DONE or the status of a refusal. */
int http_body_feed(struct http_body *b, const char *data, size_t len, size_t *ret_used,
                   struct span *ret);

#endif
