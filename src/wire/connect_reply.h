/* connect_reply.h - what a proxy answers to CONNECT, up to the end of its head.
 *
 * The bytes after the head are the server's and belong to the skill: the parser
 * says exactly how many are the head's, however they are cut. It trusts the
 * proxy with nothing: one form of status line, a cap, no control bytes. */
#ifndef WIRE_CONNECT_REPLY_H
#define WIRE_CONNECT_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define CONNECT_REPLY_MAX 16384 /* bytes of all heads together */

enum connect_verdict {
	CONNECT_MORE,
	CONNECT_DONE,   /* `status` is there */
	CONNECT_BROKEN, /* not an answer of HTTP/1, or too long */
};

struct connect_reply {
	unsigned status; /* of the last head: 101, or 200 to 599 */
	size_t len;      /* of all heads so far */
	size_t at;       /* in this line */
	bool first;      /* this is a status line */
	bool cr;         /* the last byte was a CR */
	bool over;       /* nothing more is taken */
};

void connect_reply_init(struct connect_reply *r);

/* Takes the next bytes; *ret_used of them are the head's: all of them as long
 * as there is more to come. 1xx heads but 101 are passed over. */
enum connect_verdict connect_reply_feed(struct connect_reply *r, const char *data, size_t len,
                                        size_t *ret_used);

/* Any 2xx opens the tunnel. */
bool connect_reply_opens(const struct connect_reply *r);

#endif
