/* otlp_send.h - posts one request to the owner's collector, by libcurl, and says what
 * the answer means. The answer is not trusted: it is capped and has a deadline. */
#ifndef OTEL_OTLP_SEND_H
#define OTEL_OTLP_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "otel/otel_config.h"

struct otlp_reply {
	unsigned status;        /* 0: no answer arrived */
	bool retry;             /* no answer, for a reason that may pass */
	int64_t retry_after_ms; /* as the server asks; -1: it does not */
	bool has_partial;
	struct otlp_partial partial;
	char why[200]; /* why no answer arrived */
};

struct otlp_body {
	const char *data;
	size_t len;
};

/* Posts once. Returns at deadline_ms (clock_ms()) at the latest. */
void otlp_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* Posts, and repeats it if the specification of OTLP says so (429, 502, 503, 504, no connection),
 * at growing intervals or when the server says. Returns true if the collector accepted the
 * request. */
bool otlp_send(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
               struct otlp_reply *ret);

/* The wait that the head of an answer asks for (Retry-After: seconds or a date), in
 * milliseconds; -1: none. */
int64_t otlp_retry_after(const char *head, size_t len);

#endif
