/* curl.h - sends one POST with libcurl. The library is loaded at the first use, so that other
 * commands are not slowed down and also work on a machine without it.
 *
 * The server is not trusted. Its answer is capped by the buffers that receive it, the whole request
 * has one deadline, redirects are not followed, and only HTTP is allowed. IPv4 and IPv6 addresses
 * are tried. The proxy is the one in libcurl's usual variables (https_proxy, no_proxy and so on):
 * an owner who sets one often has no other way out. */
#ifndef OS_CURL_H
#define OS_CURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct curl_header {
	const char *name;
	const char *value; /* "": the header is sent empty */
};

/* All borrowed. */
struct curl_request {
	const char *url;
	bool plain;  /* allow http://, too; otherwise https:// only */
	bool direct; /* never through a proxy */
	const struct curl_header *headers;
	size_t n_headers;
	const char *body;
	size_t len;
	const char *ca; /* a file name, like `cert` and `key`; NULL: the system's CAs are used */
	const char *cert;
	const char *key;
	uint64_t deadline_ms; /* clock_ms() */
};

struct curl_reply {
	unsigned status; /* 0: no answer with a complete head arrived */
	bool retry;      /* a failure of the network prevented an answer; try again later */
	bool whole;      /* the body is complete */
	char why[200];   /* why no answer arrived */
};

/* Appends the answer to `head` and `body`; an answer that exceeds their caps ends the
 * transfer. Not thread-safe: one connection is kept and reused. */
void curl_post(const struct curl_request *q, struct buf *head, struct buf *body,
               struct curl_reply *ret);

#endif
