/* queue.h - bytes that wait to be written to a non-blocking fd. The queue does not limit its
 * length: the caller must do so. */
#ifndef MCP_QUEUE_H
#define MCP_QUEUE_H

#include <stddef.h>

struct queue {
	char *data;
	size_t at; /* offset of the first byte that is not written yet */
	size_t len;
	size_t room;
};

static inline size_t queue_left(const struct queue *q)
{
	return q->len - q->at;
}

int queue_add(struct queue *q, const void *data, size_t len); /* -1: out of memory */
/* Writes as many bytes as the fd takes. Returns 0 also if bytes are left; -1 with errno if the fd
 * is closed. */
int queue_flush(struct queue *q, int fd);
void queue_clear(struct queue *q); /* accepts a zeroed queue; the queue is zeroed afterwards */

#endif
