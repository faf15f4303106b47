/* http1.h - checks the Host of every HTTP/1 request on a connection.
 *
 * The checker gets the skill's bytes as they arrive and says how many of them may pass to the
 * server. The head of a request is held back until it is complete and judged; then its body passes,
 * up to the announced length; then comes the next head. Everything ambiguous is denied: it must not
 * be possible that two parsers read the same stream in two ways. */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_MAX_HEAD       (32 * 1024)
#define HTTP1_MAX_HOST       262 /* bytes of name, ':', port and NUL */
#define HTTP1_MAX_METHOD     32
#define HTTP1_MAX_CHUNK_LINE 256  /* size, extensions and line end */
#define HTTP1_MAX_TRAILER    8192 /* all lines after the last chunk */

enum http1_verdict {
	HTTP1_PASS,    /* *ret_pass bytes may pass. If it is more than 0, call http1_feed() again at
	                  once with the rest. If it is 0, wait for more bytes or, if http1_waiting(),
	                  for the server */
	HTTP1_REQUEST, /* a head is complete and struct http1.host is its Host. Judge it; then
	                  either call http1_allow() and feed again, or close the connection */
	HTTP1_DENY,    /* the reason is struct http1.why */
};

enum http1_deny {
	HTTP1_OK,
	HTTP1_NOT_HTTP, /* not a request line */
	HTTP1_TOO_LONG,
	HTTP1_NO_HOST,    /* there is no Host, or it is empty */
	HTTP1_TWO_HOSTS,  /* two Host lines, or an absolute URI with another host */
	HTTP1_BAD_HOST,   /* the host has bytes that no host name has, or user information */
	HTTP1_CONNECT,    /* the method is CONNECT */
	HTTP1_FOLDED,     /* obsolete line folding */
	HTTP1_BAD_HEADER, /* blank before the colon, bare CR or LF, NUL, no colon, and so on */
	HTTP1_SMUGGLING, /* Content-Length with Transfer-Encoding, two lengths, an invalid length, a
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
	uint16_t port;             /* port in the Host line; 0: it has none */
	bool upgrade;              /* this request asks for an upgrade (not h2c) */
	bool expect;               /* the client sends the body only after a 100 from the server */
	/* private */
	int state;
	uint64_t left;   /* bytes that pass without checks: a head with its body, or a chunk */
	uint64_t length; /* Content-Length */
	size_t scan;     /* how many bytes of the section that is held back were read */
	size_t line;     /* position of the current line in that section */
	size_t target;   /* position of the request target; target_len: its length */
	size_t target_len;
	bool has_host, has_length, chunked, old; /* old: HTTP/1.0 */
	bool later;                              /* this is not the first request */
	bool waiting, raw;
};

void http1_init(struct http1 *h);

/* `data` must be all bytes that have not passed yet. *ret_pass is 0 unless the verdict is
 * HTTP1_PASS. After HTTP1_REQUEST the result stays the same until http1_allow() is called; after
 * HTTP1_DENY it stays the same for ever. The caller must be able to hold back HTTP1_MAX_HEAD
 * bytes. */
enum http1_verdict http1_feed(struct http1 *h, const char *data, size_t len, size_t *ret_pass);

/* Allows the request that http1_feed() reported last. */
void http1_allow(struct http1 *h);

/* True if the stream waits for the server. After an upgrade request, all further bytes are held
 * back until http1_switched() or http1_not_switched() is called. Meanwhile the caller passes the
 * server's bytes to http1_is_switch().
 *
 * The same applies to a body announced with "Expect: 100-continue", until http1_continued() or
 * http1_not_switched() is called. If a server refuses the body, it may read the next bytes as a
 * request or as the body, so nothing more may pass to it.
 *
 * Only the first request of a connection may ask for an upgrade or a 100, because its answer begins
 * with the server's first byte. To find the answer to a later request, the checker would have to
 * read the bodies of all answers before it. It cannot search for "HTTP/1.1 101": a page can contain
 * this text, too. */
bool http1_waiting(const struct http1 *h);

/* Call it if the server answered 101 to the upgrade request: all further bytes pass. It is ignored
 * if there was no such request. */
void http1_switched(struct http1 *h);

/* Call it if the server gave any other final answer. After an upgrade request, the next request is
 * judged as usual. After the announcement of a body, nothing more passes. */
void http1_not_switched(struct http1 *h);

/* Call it if the server answered 100: the body passes. */
void http1_continued(struct http1 *h);

/* True if the server refused the body: nothing passes any more. */
bool http1_refused(const struct http1 *h);

/* http1_is_switch() reads the beginning of the server's answer. The caller initialises the struct
 * with { .expects = ... } and feeds the server's bytes in order, from the first one, until
 * `decided`. Returns true if the answer to the upgrade request is known to be a 101. Interim
 * answers (100, 103) are skipped, except the 100 that a body waits for, which sets `go_on`. An
 * answer that is not HTTP/1.1 is not an error; the result is false. When `decided` is true, the
 * result does not change any more. */
struct http1_status {
	bool expects; /* the client sends its body only after a 100 */
	bool go_on;   /* the 100 has arrived */
	char line[16];
	size_t n;
	bool decided;
	/* private */
	bool is_switch, skipping;
	size_t ending; /* how many bytes of the CR LF CR LF that ends an interim head were read */
	size_t total;
};
bool http1_is_switch(struct http1_status *s, const char *data, size_t len);

#endif
