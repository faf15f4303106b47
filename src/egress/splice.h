/* splice.h - moves the bytes of one direction of a connection. Large amounts are moved without
 * copying them.
 *
 * The bytes go through a pipe, which exists only while there are bytes in it, because the kernel
 * shrinks the pipes of a user that has many. */
#ifndef EGRESS_SPLICE_H
#define EGRESS_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow {
	int from, to;
	int pipe[2]; /* -1: none */
	size_t piped;
	bool readable; /* there may be bytes to read; each event of the source sets it */
	bool ending;   /* the source has ended or will end, so read again after a short read */
	bool urgent;   /* urgent data will come, which splice() cannot move */
	bool bulk;     /* the last read was large, so use a pipe */
	bool blocked;  /* the destination cannot take more for now */
	bool eof;      /* the source has ended */
	bool done;     /* the end of the source was passed on to the destination */
	bool last;     /* the other direction is done, so both sockets are about to be closed */
};

enum flow_result { FLOW_IDLE, FLOW_MOVED, FLOW_BROKEN };

/* Initialises a flow. Borrows the sockets. */
void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f);

/* Moves all bytes that can be moved now, at most `max`, and adds their number to *ret_moved. */
enum flow_result flow_turn(struct flow *f, uint64_t max, uint64_t *ret_moved);

#endif
