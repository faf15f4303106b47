/* http_request.h - parses one HTTP/1.1 request for our own server.
 *
 * No I/O: bytes in, their meaning out. http1_head.h judges the lines of the head and is strict
 * wherever two readers could disagree. In addition, fields that decide something may appear only
 * once, chunks have no extensions and no trailer, and HTTP/1.0 is refused. A failure is the status
 * of the answer. */
#ifndef WIRE_HTTP_REQUEST_H
#define WIRE_HTTP_REQUEST_H

#include "wire/http1_head.h"

#define HTTP_MAX_HEAD   (16 * 1024)
#define HTTP_MAX_FIELDS 64

enum http_verdict {
	HTTP_MORE = 0,  /* more bytes are needed */
	HTTP_DONE = 1,  /* the head, or the body, is complete */
	HTTP_PIECE = 2, /* of the body */
	                /* Any other value is the status of a refusal: 400, 413, 417, 431 or 505. */
};

struct http_field {
	struct span name, value; /* into the caller's bytes, without blanks around them */
};

/* Must be zeroed before each request. */
struct http_request {
	struct http1 lines; /* host, port, has_length, length, chunked */
	struct span method, target;
	struct http_field fields[HTTP_MAX_FIELDS];
	size_t n_fields;
	bool close;   /* this is the last request on the connection */
	bool expects; /* "100-continue" */
	size_t seen;  /* private: bytes read so far */
};

/* `data` is everything from the first byte of the request. The same bytes can be given again with
 * more after them, elsewhere in memory. With HTTP_DONE *ret_len is the length of the head, and the
 * spans point into `data`. */
int http_request_head(struct http_request *r, const char *data, size_t len, size_t *ret_len);

/* The first field of that name, in any case; NULL if there is none. */
const struct span *http_request_field(const struct http_request *r, const char *name);
/* Does Accept allow this type ("text/event-stream")? Without Accept every type is allowed. */
bool http_request_accepts(const struct http_request *r, const char *type);

bool http_span_is(struct span s, const char *text);

/* ---- the body ---------------------------------------------------------------- */

struct http_body {
	int state;
	uint64_t left; /* of the body, or of this chunk */
	uint64_t got;
	uint64_t max;
	unsigned digits;
};

/* HTTP_MORE: a body begins. HTTP_DONE: there is none. 413: it is longer than `max`. */
int http_body_init(struct http_body *b, const struct http_request *r, uint64_t max);
/* One step: consumes *ret_used bytes. With HTTP_PIECE *ret is a part of the body among them. Call
 * it again with the rest until it returns HTTP_MORE or HTTP_DONE. */
int http_body_feed(struct http_body *b, const char *data, size_t len, size_t *ret_used,
                   struct span *ret);

#endif
