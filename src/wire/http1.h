/* http1.h - the Host of every HTTP/1 request on a connection.
 *
 * A stream checker: it is fed the skill's bytes as they come and says how many
 * of them may go on to the server. A request's head is held back until it is
 * complete and judged; its body is passed as its length says; then the next
 * head. Whatever is ambiguous is denied: two parsers must never be able to
 * read one stream in two ways. */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_MAX_HEAD       (32 * 1024)
#define HTTP1_MAX_HOST       262 /* name, ':' and port, NUL */
#define HTTP1_MAX_METHOD     32
#define HTTP1_MAX_CHUNK_LINE 256  /* size, extensions and line end */
#define HTTP1_MAX_TRAILER    8192 /* all lines behind the last chunk */

enum http1_verdict {
	HTTP1_PASS,    /* *ret_pass bytes may go on. More than 0: feed the rest, if any, again at
	                * once; 0: nothing can be said without more bytes, or http1_waiting() */
	HTTP1_REQUEST, /* a head is complete: struct http1.host is its Host; judge it, then call
	                * http1_allow() and feed again, or close */
	HTTP1_DENY,    /* see struct http1.why */
};

enum http1_deny {
	HTTP1_OK,
	HTTP1_NOT_HTTP, /* no request line */
	HTTP1_TOO_LONG,
	HTTP1_NO_HOST,    /* none, empty, or HTTP/1.0 without one */
	HTTP1_TWO_HOSTS,  /* two Host lines, or an absolute URI that names another */
	HTTP1_BAD_HOST,   /* bytes that no host has; userinfo */
	HTTP1_CONNECT,    /* the CONNECT method */
	HTTP1_FOLDED,     /* obsolete line folding */
	HTTP1_BAD_HEADER, /* space before the colon, bare CR or LF, NUL, no colon ... */
	HTTP1_SMUGGLING,  /* Content-Length with Transfer-Encoding, two lengths, a bad one,
	                   * a transfer coding that is not exactly "chunked", an upgrade with
	                   * a body */
	HTTP1_BAD_CHUNK,
	HTTP1_H2,           /* the HTTP/2 preface, Upgrade: h2c, HTTP2-Settings */
	HTTP1_VERSION,      /* not HTTP/1.0 or HTTP/1.1 */
	HTTP1_LATE_UPGRADE, /* an upgrade in a request that is not the first */
	HTTP1_EXPECT,       /* an expectation that is not exactly one "100-continue" */
	HTTP1_LATE_EXPECT,  /* one with a body, in a request that is not the first */
};

struct http1 {
	enum http1_deny why;
	char host[HTTP1_MAX_HOST]; /* lower case, without port and final dot; IPv6
	                            * without its brackets */
	uint16_t port;             /* of the Host line; 0: not given */
	bool upgrade;              /* this request asks for an upgrade (not h2c) */
	bool expect;               /* its body waits for the server's 100 */
	/* private */
	int state;
	uint64_t left;   /* bytes that pass unread: head with body, a chunk */
	uint64_t length; /* Content-Length */
	size_t scan;     /* bytes looked at of the head, chunk line or trailer held back */
	size_t line;     /* where its current line begins */
	size_t target;   /* where the request target begins, and its length */
	size_t target_len;
	bool has_host, has_length, chunked, old; /* old: HTTP/1.0 */
	bool later;                              /* a request went before this one */
	bool waiting, raw;
};

void http1_init(struct http1 *h);

/* data: everything not yet passed on, from the first such byte. *ret_pass is 0
 * unless the verdict is HTTP1_PASS. HTTP1_REQUEST is repeated until
 * http1_allow(), HTTP1_DENY for ever. A caller that can hold HTTP1_MAX_HEAD
 * bytes never gets stuck. */
enum http1_verdict http1_feed(struct http1 *h, const char *data, size_t len, size_t *ret_pass);

/* The request that was just reported may go. */
void http1_allow(struct http1 *h);

/* An upgrade went on to the server and its answer is not known: what comes
 * behind the request is held back until http1_switched() or
 * http1_not_switched(). Meanwhile the server's bytes go through
 * http1_is_switch().
 *
 * So it is of a body that was announced with "Expect: 100-continue", until
 * http1_continued() or http1_not_switched(): a server that does not want it may read
 * what comes as the next request, or as the body. Nothing more may go to it then.
 *
 * Only the first request of a connection can ask: its answer begins with the
 * first byte of the server, while the answer to a later one could only be found
 * by reading all bodies before it, where a page can say "HTTP/1.1 101" too. */
bool http1_waiting(const struct http1 *h);

/* The server answered 101 to the one outstanding upgrade: all that follows is
 * raw. Ignored if no upgrade was asked for. */
void http1_switched(struct http1 *h);

/* It answered something else: the next request is judged as always; where a body was
 * announced, there is none. */
void http1_not_switched(struct http1 *h);

/* It answered 100: the body goes on. */
void http1_continued(struct http1 *h);

/* The server did not want the body: nothing passes any more. */
bool http1_refused(const struct http1 *h);

/* The server's side, watched only as far as needed: feed it the server's bytes
 * in order, from the first one, until `decided`. Returns true when the answer
 * to the outstanding upgrade is a 101; interim answers (100, 103) are skipped, but
 * for the 100 that a body waits for, which is `go_on`.
 * Never denies: what is no HTTP/1.1 answer is decided as "no switch". Starts as
 * { .expects = ... }. Once decided, the answer stays. */
struct http1_status {
	bool expects; /* a body waits for the 100 */
	bool go_on;   /* it came */
	char line[16];
	size_t n;
	bool decided;
	/* private */
	bool is_switch, skipping;
	size_t ending; /* how much of the blank line behind an interim head was seen */
	size_t total;
};
bool http1_is_switch(struct http1_status *s, const char *data, size_t len);

const char *http1_deny_name(enum http1_deny why); /* "no_host", ... stable reason codes */

#endif
