/* queue.c - keeps the bytes that an fd does not accept yet, and writes them later. */
#include "mcp/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT_ROOM (64 * 1024) /* an empty queue keeps at most this much memory */

static int make_room(struct queue *q, size_t len)
{
	if (q->at > 0 && q->room - q->len < len) {
		memmove(q->data, q->data + q->at, queue_left(q));
		q->len -= q->at;
		q->at = 0;
	}
	if (q->room - q->len >= len) {
		return 0;
	}
	size_t room = q->room < 4096 ? 4096 : q->room;

	while (room - q->len < len) {
		room *= 2;
	}
	char *data = realloc(q->data, room);

	if (data == NULL) {
		return -1;
	}
	q->data = data;
	q->room = room;
	return 0;
}

int queue_add(struct queue *q, const void *data, size_t len)
{
	assert(q->at <= q->len && q->len <= q->room);
	if (make_room(q, len) < 0) {
		return -1;
	}
	memcpy(q->data + q->len, data, len);
	q->len += len;
	return 0;
}

static ssize_t write_some(int fd, const char *data, size_t len)
{
	ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n < 0 && errno == ENOTSOCK ? write(fd, data, len) : n;
}

int queue_flush(struct queue *q, int fd)
{
	while (queue_left(q) > 0) {
		ssize_t n = write_some(fd, q->data + q->at, queue_left(q));
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return errno == EAGAIN ? 0 : -1;
		}
		q->at += (size_t)n;
	}
	q->at = q->len = 0;
	if (q->room > KEPT_ROOM) {
		queue_clear(q);
	}
	return 0;
}

void queue_clear(struct queue *q)
{
	free(q->data);
	*q = (struct queue){ 0 };
}
