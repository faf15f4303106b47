#include "egress/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

#define PIPE_BYTES 65536 /* what a pipe takes by default */

/* One empty pipe for the next flow that needs one: most turns leave none in use. */
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

/* Only an empty one: what is left in a pipe belongs to its connection. */
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
	*f = (struct flow){ .from = from, .to = to, .pipe = { -1, -1 } };
}

void flow_done(struct flow *f)
{
	own_close(&f->pipe[0]);
	own_close(&f->pipe[1]);
}

/* 1: moved, 0: not now, -1: broken. */
static int fill(struct flow *f, uint64_t max)
{
	size_t room = PIPE_BYTES - f->piped;

	if (f->eof || room == 0 || max == 0) {
		return 0;
	}
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
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static int drain(struct flow *f, uint64_t *ret_moved)
{
	if (f->piped == 0) {
		return 0;
	}
	ssize_t n =
	        splice(f->pipe[0], NULL, f->to, NULL, f->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		f->piped -= (size_t)n;
		*ret_moved += (uint64_t)n;
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

enum flow_result flow_turn(struct flow *f, uint64_t max, uint64_t *ret_moved)
{
	uint64_t start = *ret_moved;
	bool moved = false;

	while (*ret_moved - start < max) {
		int in = fill(f, max - (*ret_moved - start));
		int out = drain(f, ret_moved);
		if (in < 0 || out < 0) {
			return FLOW_BROKEN;
		}
		if (in == 0 && out == 0) {
			break;
		}
		moved = true;
	}
	if (f->piped == 0) {
		give_pipe(f);
		if (f->eof && !f->done) {
			(void)shutdown(f->to, SHUT_WR);
			f->done = true;
		}
	}
	return moved ? FLOW_MOVED : FLOW_IDLE;
}
