/* connect_reply.h - parses a proxy's answer to CONNECT, up to the end of its head.
 *
 * The bytes after the head come from the server and belong to the skill. So the parser tells
 * exactly how many bytes are the head's, however they are cut. The proxy is not trusted: one form
 * of status line, a cap, no control bytes. */
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
	unsigned status; /* of the last head: 101, or 200 to 599 */
	size_t len;      /* of all heads so far */
	size_t at;       /* in this line */
	bool first;      /* the current line is a status line */
	bool cr;         /* the last byte was a CR */
	bool over;       /* the last head is complete */
};

void connect_reply_init(struct connect_reply *r);

/* Reads the next bytes; *ret_used of them belong to the head (all of them for CONNECT_MORE). 1xx
 * heads other than 101 are skipped. */
enum connect_verdict connect_reply_feed(struct connect_reply *r, const char *data, size_t len,
                                        size_t *ret_used);

/* True for every 2xx status. */
bool connect_reply_opens(const struct connect_reply *r);

#endif
