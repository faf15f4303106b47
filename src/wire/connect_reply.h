/* connect_reply.h - parses a proxy's answer to CONNECT, up to the end of its head.
 *
 * The bytes after the head come from the server and belong to the skill. So the parser returns
 * exactly how many bytes belong to the head, even if they arrive in pieces. The proxy is not
 * trusted: only one form of status line is accepted, the length has a cap, and control bytes are
 * refused. */
#ifndef WIRE_CONNECT_REPLY_H
#define WIRE_CONNECT_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define CONNECT_REPLY_MAX 16384 /* bytes of all heads together */

enum connect_verdict {
	CONNECT_MORE,
	CONNECT_DONE,   /* `status` is valid */
	CONNECT_BROKEN, /* not an HTTP/1 answer, or too long */
};

struct connect_reply {
	unsigned status; /* status of the last head: 101, or 200 to 599 */
	size_t len;      /* bytes of all heads so far */
	size_t at;       /* position in the current line */
	bool first;      /* the current line is a status line */
	bool cr;         /* the last byte was a CR */
	bool over;       /* the last head is complete */
};

void connect_reply_init(struct connect_reply *r);

/* Reads the next bytes. *ret_used is the number of bytes that belong to heads (all, if the result
 * is CONNECT_MORE). Heads with a status of 1xx other than 101 are skipped. */
enum connect_verdict connect_reply_feed(struct connect_reply *r, const char *data, size_t len,
                                        size_t *ret_used);

/* True if the status is 2xx: the proxy has opened the connection. */
bool connect_reply_opens(const struct connect_reply *r);

#endif
