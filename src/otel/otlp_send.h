/* otlp_send.h - posts one request to the owner's collector, using libcurl, and interprets the
 * answer. The answer is not trusted, so its size is limited and it has a deadline. */
#ifndef OTEL_OTLP_SEND_H
#define OTEL_OTLP_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "otel/otel_config.h"

struct otlp_reply {
	unsigned status;        /* 0: no answer arrived */
	bool retry;             /* no answer arrived; the reason may be temporary */
	int64_t retry_after_ms; /* the wait that the server asks for; -1: none */
	bool has_partial;
	struct otlp_partial partial;
	char why[200]; /* why no answer arrived */
};

struct otlp_body {
	const char *data;
	size_t len;
};

/* Posts once. Returns at deadline_ms (by clock_ms()) or earlier. */
void otlp_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* Posts, and repeats the request if the OTLP specification says so (429, 502, 503, 504, no
 * connection). The waits between the attempts grow, unless the server says how long to wait.
 * Returns true if the collector accepted the request. */
bool otlp_send(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* Returns the wait that the head of an answer asks for (Retry-After: seconds or a date), in
 * milliseconds; -1: none. */
int64_t otlp_retry_after(const char *head, size_t len);

#endif
