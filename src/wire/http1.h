/* http1.h - checks the Host of every HTTP/1 request on a connection.
 *
 * The checker gets the skill's bytes as they arrive and says how many of them may pass to the
 * server. The head of a request is held back until it is complete and judged; then its body passes,
 * as long as its length says; then comes the next head. Everything ambiguous is denied: two parsers
 * must never be able to read one stream in two ways. */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_MAX_HEAD       (32 * 1024)
#define HTTP1_MAX_HOST       262 /* name, ':' and port, NUL */
#define HTTP1_MAX_METHOD     32
#define HTTP1_MAX_CHUNK_LINE 256  /* size, extensions and line end */
#define HTTP1_MAX_TRAILER    8192 /* all lines after the last chunk */

enum http1_verdict {
	HTTP1_PASS, /* *ret_pass bytes may pass. If it is more than 0, feed the rest again at once;
	               if 0, more bytes are needed, or http1_waiting() */
	HTTP1_REQUEST, /* a head is complete and struct http1.host is its Host. Judge it; then call
	                  http1_allow() and feed again, or close */
	HTTP1_DENY,    /* the reason is struct http1.why */
};

enum http1_deny {
	HTTP1_OK,
	HTTP1_NOT_HTTP, /* not a request line */
	HTTP1_TOO_LONG,
	HTTP1_NO_HOST,    /* none or an empty one */
	HTTP1_TWO_HOSTS,  /* two Host lines, or an absolute URI with another host */
	HTTP1_BAD_HOST,   /* bytes that no host name has; userinfo */
	HTTP1_CONNECT,    /* the CONNECT method */
	HTTP1_FOLDED,     /* obsolete line folding */
	HTTP1_BAD_HEADER, /* blank before the colon, bare CR or LF, NUL, no colon, and so on */
	HTTP1_SMUGGLING,  /* Content-Length with Transfer-Encoding, two lengths, an invalid one, a
	                     transfer coding other than exactly "chunked", an upgrade with a body */
	HTTP1_BAD_CHUNK,
	HTTP1_H2,           /* the HTTP/2 preface, Upgrade: h2c, HTTP2-Settings */
	HTTP1_VERSION,      /* not HTTP/1.0 or HTTP/1.1 */
	HTTP1_LATE_UPGRADE, /* an upgrade in a request that is not the first */
	HTTP1_EXPECT,       /* an expectation other than exactly one "100-continue" */
	HTTP1_LATE_EXPECT,  /* a 100-continue with a body in a request that is not the first */
};

struct http1 {
	enum http1_deny why;
	char host[HTTP1_MAX_HOST]; /* in lower case, without port and final dot; IPv6 without
	                              brackets */
	uint16_t port;             /* of the Host line; 0: none */
	bool upgrade;              /* this request asks for an upgrade (not h2c) */
	bool expect;               /* the body waits for a 100 from the server */
	/* private */
	int state;
	uint64_t left;   /* bytes that pass without checks: a head with its body, or a chunk */
	uint64_t length; /* Content-Length */
	size_t scan;     /* bytes of the held section that were read */
	size_t line;     /* the position of its current line */
	size_t target;   /* the position of the request target, and its length */
	size_t target_len;
	bool has_host, has_length, chunked, old; /* old: HTTP/1.0 */
	bool later;                              /* not the first request */
	bool waiting, raw;
};

void http1_init(struct http1 *h);

/* data: all bytes that were not passed yet. *ret_pass is 0 unless the verdict is HTTP1_PASS.
 * HTTP1_REQUEST is repeated until http1_allow(), HTTP1_DENY forever. A caller that can hold
 * HTTP1_MAX_HEAD bytes never gets stuck. */
enum http1_verdict http1_feed(struct http1 *h, const char *data, size_t len, size_t *ret_pass);

/* Allows the request that was just reported. */
void http1_allow(struct http1 *h);

/* Does the stream wait for the server? After an upgrade request, everything after it is held back
 * until http1_switched() or http1_not_switched(). Meanwhile the server's bytes go through
 * http1_is_switch().
 *
 * The same holds for a body announced with "Expect: 100-continue", until http1_continued() or
 * http1_not_switched(). A server that refuses the body may read the next bytes as a request, or as
 * the body, so that nothing may pass to it then.
 *
 * Only the first request of a connection can ask for either. Its answer begins with the server's
 * first byte. The answer to a later request could only be found by reading all bodies before it,
 * where a page can contain "HTTP/1.1 101" too. */
bool http1_waiting(const struct http1 *h);

/* The server answered 101 to the upgrade request: everything that follows passes. Ignored if there
 * was no such request. */
void http1_switched(struct http1 *h);

/* The server answered something else. The next request is judged as usual. An announced body must
 * not follow. */
void http1_not_switched(struct http1 *h);

/* The server answered 100: the body passes. */
void http1_continued(struct http1 *h);

/* True if the server refused the body: nothing passes any more. */
bool http1_refused(const struct http1 *h);

/* Reads the server's answer, as far as necessary. Feed it the server's bytes in order, from the
 * first one, until `decided`. Returns true when the answer to the upgrade request is a 101. Interim
 * answers (100, 103) are skipped, except the 100 that a body waits for, which sets `go_on`. It
 * never denies: an answer that is not HTTP/1.1 means "no switch". Start with { .expects = ... }.
 * The decision does not change any more. */
struct http1_status {
	bool expects; /* a body waits for the 100 */
	bool go_on;   /* the 100 has arrived */
	char line[16];
	size_t n;
	bool decided;
	/* private */
	bool is_switch, skipping;
	size_t ending; /* bytes of the blank line after an interim head that were read */
	size_t total;
};
bool http1_is_switch(struct http1_status *s, const char *data, size_t len);

const char *http1_deny_name(enum http1_deny why); /* "no_host", ... stable reason codes */

#endif
