/* curl.h - one POST by libcurl, which is loaded when it is first needed: a run
 * does not pay for it, and a machine without it misses nothing else.
 *
 * The server is trusted with nothing but what it is sent. Its answer is capped
 * by the buffers that take it, everything has one deadline, redirects are not
 * followed, and no protocol but HTTP is spoken. Addresses of both families are
 * tried. A proxy is the one of libcurl's usual variables (https_proxy, no_proxy
 * and the like): where an owner has one, it often is the only way out. */
#ifndef OS_CURL_H
#define OS_CURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct curl_header {
	const char *name;
	const char *value; /* "" is sent as an empty one */
};

/* All borrowed. */
struct curl_request {
	const char *url;
	bool plain; /* http:// as well; otherwise https:// alone */
	const struct curl_header *headers;
	size_t n_headers;
	const char *body;
	size_t len;
	const char *ca; /* files; NULL: the system's */
	const char *cert;
	const char *key;
	uint64_t deadline_ms; /* clock_ms() */
};

struct curl_reply {
	unsigned status; /* of an answer whose head is whole; 0: there was none */
	bool retry;      /* none, for a reason of the network, which may pass */
	bool whole;      /* the body came to its end */
	char why[200];   /* there was no answer */
};

/* Appends the answer to `head` and `body`; what is past their caps ends the
 * transfer. Not for threads: one connection is kept and used again. */
void curl_post(const struct curl_request *q, struct buf *head, struct buf *body,
               struct curl_reply *ret);

#endif
