/* splice.h - one direction of a relayed connection; what is much without copying.
 *
 * Bytes go through a pipe that exists only while some are on their way: the
 * kernel shrinks the pipes of a user who has many. */
#ifndef EGRESS_SPLICE_H
#define EGRESS_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow {
	int from, to;
	int pipe[2]; /* -1: none */
	size_t piped;
	bool readable; /* there may be something to read; an event says so anew */
	bool ending;   /* an end is to come: a short read is not the last one */
	bool urgent;   /* nor is it before urgent data, which no splice() gets past */
	bool bulk;     /* worth a pipe */
	bool blocked;  /* the other side takes no more for now */
	bool eof;      /* the source has ended */
	bool done;     /* and its end was passed on */
	bool last;     /* the other way is done: both ends are about to be closed */
};

enum flow_result { FLOW_IDLE, FLOW_MOVED, FLOW_BROKEN };

void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f);

/* Moves what can be moved now, at most `max` bytes; *ret_moved is added to. */
enum flow_result flow_turn(struct flow *f, uint64_t max, uint64_t *ret_moved);

#endif
