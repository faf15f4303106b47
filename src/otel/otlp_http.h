/* otlp_http.h - one POST to the owner's collector, and what came of it. The
 * server is trusted with nothing but the data: its answer is capped and has a
 * deadline. */
#ifndef OTEL_OTLP_HTTP_H
#define OTEL_OTLP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "otel/otlp_env.h"

struct otlp_reply {
	unsigned status;        /* 0: there was no answer */
	bool retry;             /* no answer, for a reason that may pass */
	int64_t retry_after_ms; /* as the server asks; -1: it does not */
	bool has_partial;
	struct otlp_partial partial;
	char why[200]; /* of no answer */
};

struct otlp_body {
	const char *data;
	size_t len;
};

/* Until deadline_ms (clock_ms()) at most. http:// by ourselves; https:// by
 * libcurl, which is loaded for it. */
void otlp_http_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                    struct otlp_reply *ret);
void otlp_curl_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                    struct otlp_reply *ret);

/* One of the two, once. */
void otlp_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* Tries again where the specification of OTLP says so: 429, 502, 503, 504, no
 * connection; later and later, or when the server says. True: it was taken. */
bool otlp_send(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* The shared parts. `line` is called for every header but Host and the length. */
typedef void otlp_header_fn(void *arg, const char *name, const char *value);
void otlp_headers(const struct otlp_target *t, otlp_header_fn *line, void *arg);
/* A head, already known to be one: Retry-After and Content-Length (-1: none). */
int64_t otlp_retry_after(const char *head, size_t len);
int64_t otlp_content_length(const char *head, size_t len);
void otlp_reply_body(struct otlp_reply *r, const struct otlp_target *t, const char *body,
                     size_t len);

#endif
