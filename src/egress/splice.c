/* splice.c - moves bytes between two sockets: a few bytes by copying, many through a pipe. */
#include "egress/splice.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

/* A pipe has 16 places. Each can contain one page or a whole network buffer, which may have many
 * pages. */
#define PIPE_BYTES  (1U << 20)
#define SMALL_BYTES 4096 /* up to so many bytes are copied; any pipe can take the unsent rest */

/* One empty pipe, kept for the next flow that needs one. After most turns, no flow uses a pipe. */
static int spare[2] = { -1, -1 };

static int take_pipe(struct flow *f)
{
	if (spare[0] < 0) {
		return pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK);
	}
	f->pipe[0] = steal_fd(&spare[0]);
	f->pipe[1] = steal_fd(&spare[1]);
	return 0;
}

/* Removes the pipe of a flow, and keeps it for the next flow if possible. The pipe must be empty,
 * because otherwise bytes would be lost or get into another connection. */
static void give_pipe(struct flow *f)
{
	if (spare[0] < 0 && f->pipe[0] >= 0) {
		spare[0] = steal_fd(&f->pipe[0]);
		spare[1] = steal_fd(&f->pipe[1]);
	}
	flow_done(f);
}

void flow_init(struct flow *f, int from, int to)
{
	*f = (struct flow){ .from = from, .to = to, .pipe = { -1, -1 }, .readable = true };
}

void flow_done(struct flow *f)
{
	own_close(&f->pipe[0]);
	own_close(&f->pipe[1]);
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Copies a few bytes, which is cheaper than a pipe. Returns 1 if bytes were moved, 0 if none could
 * be moved now, -1 if a side is broken. */
static int copy_bytes(struct flow *f, uint64_t max, uint64_t *ret_moved)
{
	char buf[SMALL_BYTES];
	size_t want = max < sizeof(buf) ? (size_t)max : sizeof(buf);
	ssize_t n = recv(f->from, buf, want, MSG_DONTWAIT);

	if (n <= 0) {
		f->readable = n < 0 && errno == EINTR;
		f->urgent = f->urgent && f->readable;
		f->eof = n == 0;
		return n == 0 ? 1 : would_block() ? 0 : -1;
	}
	f->bulk = n == SMALL_BYTES;
	f->readable = (size_t)n == want || f->ending || f->urgent;
	ssize_t w = send(f->to, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (w < 0 && !would_block()) {
		return -1;
	}
	size_t sent = w > 0 ? (size_t)w : 0;
	size_t left = (size_t)n - sent;
	*ret_moved += sent;
	if (left > 0) {
		/* The flow may still have a pipe that has just become empty. */
		if ((f->pipe[0] < 0 && take_pipe(f) != 0) ||
		    write(f->pipe[1], buf + sent, left) != (ssize_t)left) {
			return -1;
		}
		f->piped = left;
	}
	return 1;
}

static int fill_pipe(struct flow *f, uint64_t max)
{
	size_t room = PIPE_BYTES - f->piped;

	if (f->pipe[0] < 0 && take_pipe(f) != 0) {
		return -1;
	}
	ssize_t n = splice(f->from, NULL, f->pipe[1], NULL, max < room ? (size_t)max : room,
	                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		f->piped += (size_t)n;
		return 1;
	}
	if (n == 0) {
		f->eof = true;
		return 1;
	}
	/* If there are bytes in the pipe, splice() may have failed because the pipe is full. In
	 * that case the source stays readable. */
	f->readable = f->piped > 0 || errno == EINTR;
	return would_block() ? 0 : -1;
}

/* Reads from the source so that, together with the bytes in the pipe, there are at most `max`
 * bytes. */
static int take_in(struct flow *f, uint64_t max, uint64_t *ret_moved)
{
	if (f->eof || !f->readable || max <= f->piped || f->piped >= PIPE_BYTES) {
		return 0;
	}
	if (f->urgent && f->piped > 0) {
		return 0; /* the bytes in the pipe must go first */
	}
	return !f->urgent && (f->bulk || f->piped > 0) ? fill_pipe(f, max - f->piped)
	                                               : copy_bytes(f, max, ret_moved);
}

/* Writes at most `max` bytes of the pipe. The pipe may contain more, from an earlier turn. */
static int drain_pipe(struct flow *f, uint64_t max, uint64_t *ret_moved)
{
	size_t len = f->piped < max ? f->piped : (size_t)max;

	if (len == 0) {
		return 0;
	}
	ssize_t n = splice(f->pipe[0], NULL, f->to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		f->piped -= (size_t)n;
		*ret_moved += (uint64_t)n;
		return 1;
	}
	f->blocked = true;
	return n < 0 && would_block() ? 0 : -1;
}

enum flow_result flow_turn(struct flow *f, uint64_t max, uint64_t *ret_moved)
{
	uint64_t start = *ret_moved;
	bool moved = false;

	assert(f->from >= 0 && f->to >= 0);
	f->blocked = false;
	while (*ret_moved - start < max) {
		int in = take_in(f, max - (*ret_moved - start), ret_moved);
		int out = in < 0 ? 0 : drain_pipe(f, max - (*ret_moved - start), ret_moved);
		if (in < 0 || out < 0) {
			return FLOW_BROKEN;
		}
		if (in == 0 && out == 0) {
			break;
		}
		moved = true;
	}
	f->bulk = f->bulk && *ret_moved - start >= SMALL_BYTES;
	if (f->piped == 0) {
		give_pipe(f);
		if (f->eof && !f->done) {
			if (!f->last) {
				(void)shutdown(f->to, SHUT_WR);
			}
			f->done = true;
		}
	}
	return moved ? FLOW_MOVED : FLOW_IDLE;
}
