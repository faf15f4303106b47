/* queue.h - bytes on their way into an fd that does not block. Whoever fills it looks
 * at its length: it has no bound of its own. */
#ifndef MCP_QUEUE_H
#define MCP_QUEUE_H

#include <stddef.h>

struct queue {
	char *data;
	size_t at; /* of the first that is not yet written */
	size_t len;
	size_t room;
};

static inline size_t queue_left(const struct queue *q)
{
	return q->len - q->at;
}

int queue_add(struct queue *q, const void *data, size_t len); /* -1: no memory */
/* Writes what goes. 0, also where something is left; -1 with errno: the other end is
 * gone. */
int queue_flush(struct queue *q, int fd);
void queue_clear(struct queue *q); /* accepts a zeroed one, and leaves one */

#endif
