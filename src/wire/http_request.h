/* http_request.h - one HTTP/1.1 request, for a server of our own.
 *
 * Pure: it is given bytes and says what they are. The lines of the head are judged by
 * http1_head.h, which is strict wherever two readers could differ; on top of that,
 * fields that decide something stand there once, chunks have no extensions and no
 * trailer, and there is no HTTP/1.0. Failures are the status to answer with. */
#ifndef WIRE_HTTP_REQUEST_H
#define WIRE_HTTP_REQUEST_H

#include "wire/http1_head.h"

#define HTTP_MAX_HEAD   (16 * 1024)
#define HTTP_MAX_FIELDS 64

enum http_verdict {
	HTTP_MORE = 0,  /* bytes are needed */
	HTTP_DONE = 1,  /* the head, or the body, is complete */
	HTTP_PIECE = 2, /* of a body */
	                /* anything above is the status of a refusal: 400, 413, 417, 431, 505 */
};

struct http_field {
	struct span name, value; /* in the caller's bytes; without blanks around it */
};

/* Zero before the first bytes of each request. */
struct http_request {
	struct http1 lines; /* host, port, has_length, length, chunked */
	struct span method, target;
	struct http_field fields[HTTP_MAX_FIELDS];
	size_t n_fields;
	bool close;   /* no further request will come on this connection */
	bool expects; /* "100-continue" */
	size_t seen;  /* private: bytes looked at */
};

/* `data` is everything from the first byte of the request on; the same bytes may be
 * given again with more behind them, elsewhere in memory. With HTTP_DONE *ret_len
 * bytes are the head, and the spans point there. */
int http_request_head(struct http_request *r, const char *data, size_t len, size_t *ret_len);

/* The first field of that name, in any case; NULL: none. */
const struct span *http_request_field(const struct http_request *r, const char *name);
/* Whether Accept allows this type ("text/event-stream"); no Accept allows all. */
bool http_request_accepts(const struct http_request *r, const char *type);

bool http_span_is(struct span s, const char *text);

/* ---- the body ---------------------------------------------------------------- */

struct http_body {
	int state;
	uint64_t left; /* of the length, or of this chunk */
	uint64_t got;
	uint64_t max;
	unsigned digits;
};

/* HTTP_MORE: it begins; HTTP_DONE: there is none; 413: it says itself that it is longer
 * than `max`. */
int http_body_init(struct http_body *b, const struct http_request *r, uint64_t max);
/* One step: *ret_used bytes are dealt with, and with HTTP_PIECE *ret is a part of the
 * body among them; call it again with the rest until it wants more or is done. */
int http_body_feed(struct http_body *b, const char *data, size_t len, size_t *ret_used,
                   struct span *ret);

#endif
