/* splice.h - one direction of a relayed connection. Large amounts are moved without copying.
 *
 * Bytes go through a pipe that exists only while bytes are on their way: the kernel shrinks the
 * pipes of a user that has many. */
#ifndef EGRESS_SPLICE_H
#define EGRESS_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow {
	int from, to;
	int pipe[2]; /* -1: none */
	size_t piped;
	bool readable; /* there may be something to read; set again by an event */
	bool ending;   /* the source's end will come: read on after a short read */
	bool urgent;   /* urgent data will come, which splice() cannot pass */
	bool bulk;     /* the last read was large: use a pipe */
	bool blocked;  /* the destination takes no more for now */
	bool eof;      /* the source has ended */
	bool done;     /* the source's end was passed on */
	bool last;     /* the other direction is done: both sockets are about to be closed */
};

enum flow_result { FLOW_IDLE, FLOW_MOVED, FLOW_BROKEN };

/* Borrows the sockets. */
void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f);

/* Moves what can be moved now, at most `max` bytes, and adds their number to *ret_moved. */
enum flow_result flow_turn(struct flow *f, uint64_t max, uint64_t *ret_moved);

#endif
