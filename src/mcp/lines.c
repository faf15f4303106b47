/* lines.c - one message per line on two fds.
 *
 * Input: bytes are kept until the line is complete. A line that is too long gets one error
 * answer; the rest of the line is skipped and not kept. Output: the bytes wait in a queue, which
 * is written as fast as the client reads. While more than MAX_MCP_NEWS bytes wait in the queue,
 * no further requests are read, and notifications are dropped and counted. Answers and questions
 * are queued, up to MAX_MCP_QUEUE bytes.
 *
 * The protocol calls send(), which must not free the peer. So an error in send() is handled in
 * the next turn of the loop. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/link.h"
#include "mcp/queue.h"
#include "mcp/transport.h"

#define WHERE      "mcp"
#define READ_BYTES ((size_t)64 * 1024)
#define DRAIN_MS   5000 /* time for sending the last answers after the input has ended */

enum lines_state { LINES_OPEN, LINES_BROKEN, LINES_DRAINING, LINES_CLOSED };

struct mcp_lines {
	struct mcp_out to; /* must be the first member */
	struct loop *loop;
	struct mcp_peer *peer;
	enum lines_state state;
	int in, out;
	/* A copy of the fd if `in` and `out` are the same, because epoll can watch an fd only
	 * once; -1: none. */
	int out_dup;
	int in_flags, out_flags;
	struct loop_watch *reading; /* NULL: reading is paused */
	struct loop_watch *writing;
	struct loop_timer *later;
	loop_fn *closed;
	void *arg;
	char *data; /* input: the next line begins at `at` */
	size_t at, seen, len, room;
	bool skipping; /* skips to the end of a line that is too long */
	bool ended;    /* the input has ended */
	struct queue queue;
	uint64_t dropped;
};

static void in_ready(void *arg, uint32_t events);
static void out_ready(void *arg, uint32_t events);
static void finish_lines(void *arg);

/* ---- output ------------------------------------------------------------------ */

static void finish_later(struct mcp_lines *l, uint64_t ms)
{
	loop_untimer(&l->later);
	(void)loop_after(l->loop, ms, finish_lines, l, &l->later);
}

static void mark_broken(struct mcp_lines *l)
{
	if (l->state == LINES_OPEN) {
		l->state = LINES_BROKEN;
		finish_later(l, 0);
	}
}

/* Writes the bytes that the fd takes now, and watches the fd to write the rest later. */
static int flush_lines(struct mcp_lines *l)
{
	if (queue_flush(&l->queue, l->out) < 0) {
		return -1;
	}
	if (queue_left(&l->queue) == 0) {
		loop_unwatch(&l->writing);
		return 0;
	}
	return l->writing != NULL
	               ? 0
	               : loop_watch(l->loop, l->out, EPOLLOUT, out_ready, l, &l->writing);
}

/* Adds the message as one line. Line feeds in it become blanks: they can only be white space
 * between tokens. */
static int add_line(struct queue *q, const char *json, size_t len)
{
	size_t from = q->len - q->at;

	if (queue_add(q, json, len) < 0 || queue_add(q, "\n", 1) < 0) {
		return -1;
	}
	char *line = q->data + q->at + from;

	for (char *p = memchr(line, '\n', len); p != NULL;
	     p = memchr(p, '\n', len - (size_t)(p - line))) {
		*p = ' ';
	}
	return 0;
}

static void lines_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                       size_t len)
{
	struct mcp_lines *l = (struct mcp_lines *)o;
	size_t left = queue_left(&l->queue);

	(void)status;
	if (l->state != LINES_OPEN) {
		return;
	}
	if (kind == MCP_NOTIFICATION && left + len > MAX_MCP_NEWS) {
		l->dropped++;
	} else if (len > MAX_MCP_QUEUE || left > MAX_MCP_QUEUE - len ||
	           add_line(&l->queue, json, len) < 0 || flush_lines(l) < 0) {
		mark_broken(l);
	}
}

static void lines_end(struct mcp_out *o)
{
	(void)o; /* all requests use the same `out` */
}

/* ---- input ------------------------------------------------------------------- */

static void refuse_line(struct mcp_lines *l, const char *id, int code, const char *why)
{
	auto_buf text = BUF(MAX_MCP_MESSAGE);

	mcp_error_text(&text, id, code, why, NULL);
	if (!text.failed) {
		lines_send(&l->to, MCP_RESPONSE, 400, text.data, text.len);
	}
}

static bool is_blank(const char *s, size_t len)
{
	return strspn(s, " \t\r\n") >= len;
}

/* `line[len]` is writable: it is the line feed, or free room of the buffer. */
static void take_line(struct mcp_lines *l, char *line, size_t len)
{
	struct mcp_message m = { 0 };
	const char *why;
	int code;

	line[len] = '\0';
	if (is_blank(line, len)) {
		return;
	}
	if (mcp_message_read(&m, line, len, &code, &why) < 0) {
		refuse_line(l, m.id, code, why);
		mcp_message_done(&m);
	} else {
		mcp_receive(l->peer, &l->to, &m);
	}
}

static void too_long(struct mcp_lines *l)
{
	refuse_line(l, NULL, MCP_E_REQUEST, "the message is longer than 4 MiB");
}

static bool may_read(const struct mcp_lines *l)
{
	return l->state == LINES_OPEN && queue_left(&l->queue) <= MAX_MCP_NEWS;
}

/* Handles complete lines as long as there is room for their answers. */
static void take_lines(struct mcp_lines *l)
{
	while (may_read(l)) {
		char *end = memchr(l->data + l->seen, '\n', l->len - l->seen);
		if (end == NULL) {
			l->seen = l->len;
			break;
		}
		char *line = l->data + l->at;
		size_t len = (size_t)(end - line);

		l->at = l->seen = l->at + len + 1;
		if (l->skipping) {
			l->skipping = false;
		} else if (len > MAX_MCP_MESSAGE) {
			too_long(l);
		} else {
			take_line(l, line, len);
		}
	}
	memmove(l->data, l->data + l->at, l->len - l->at);
	l->len -= l->at;
	l->seen -= l->at;
	l->at = 0;
	if (l->seen == l->len && (l->skipping || l->len > MAX_MCP_MESSAGE)) {
		if (!l->skipping) {
			l->skipping = true;
			too_long(l);
		}
		l->len = l->seen = 0;
	}
}

/* Makes room for READ_BYTES and a NUL. Frees the memory of a long line after it was handled. */
static int make_room(struct mcp_lines *l)
{
	size_t room = l->len + READ_BYTES + 1;

	if (l->room >= room && (l->len > 0 || l->room <= 4 * READ_BYTES)) {
		return 0;
	}
	room = l->len == 0 ? READ_BYTES + 1 : room > l->room * 2 ? room : l->room * 2;
	char *data = realloc(l->data, room);

	if (data == NULL) {
		return -1;
	}
	l->data = data;
	l->room = room;
	return 0;
}

static void fill_buffer(struct mcp_lines *l)
{
	if (make_room(l) < 0) {
		l->ended = true;
		return;
	}
	ssize_t n = read(l->in, l->data + l->len, READ_BYTES);

	if (n > 0) {
		l->len += (size_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		l->ended = true;
	}
}

/* Resumes or pauses reading. Must be the caller's last use of `l`, because it may free `l`. */
static void continue_reading(struct mcp_lines *l)
{
	if (l->state == LINES_OPEN && l->ended && may_read(l)) {
		if (l->len > 0 && !l->skipping) { /* the last line has no line feed */
			take_line(l, l->data, l->len);
		}
		l->len = 0;
		if (l->state == LINES_OPEN) {
			finish_lines(l);
			return;
		}
	}
	if (!may_read(l) || l->ended) {
		/* A watch for no events would still report a hang-up, so pausing removes the
		 * watch. */
		loop_unwatch(&l->reading);
	} else if (l->reading == NULL &&
	           loop_watch(l->loop, l->in, EPOLLIN, in_ready, l, &l->reading) < 0) {
		mark_broken(l);
	}
}

static void in_ready(void *arg, uint32_t events)
{
	struct mcp_lines *l = arg;

	(void)events;
	fill_buffer(l);
	take_lines(l);
	continue_reading(l);
}

static void out_ready(void *arg, uint32_t events)
{
	struct mcp_lines *l = arg;

	(void)events;
	if (flush_lines(l) < 0 || (l->state == LINES_DRAINING && queue_left(&l->queue) == 0)) {
		l->state = LINES_BROKEN;
		finish_lines(l);
	} else if (l->state == LINES_OPEN && queue_left(&l->queue) <= MAX_MCP_NEWS / 2) {
		take_lines(l);
		continue_reading(l);
	}
}

/* ---- start and end ------------------------------------------------------------- */

static void forget_peer(struct mcp_lines *l)
{
	if (l->peer != NULL) {
		mcp_out_gone(l->peer, &l->to);
		mcp_peer_free(l->peer);
		l->peer = NULL;
	}
}

/* Called when the client is gone, or when the input has ended. If only the input has ended, the
 * queue is still sent. */
static void finish_lines(void *arg)
{
	struct mcp_lines *l = arg;
	bool drain = l->state == LINES_OPEN && queue_left(&l->queue) > 0;

	l->state = drain ? LINES_DRAINING : LINES_CLOSED;
	forget_peer(l);
	loop_unwatch(&l->reading);
	if (drain) {
		finish_later(l, DRAIN_MS);
		return;
	}
	loop_unwatch(&l->writing);
	loop_untimer(&l->later);
	if (l->closed != NULL) {
		l->closed(l->arg);
	}
}

static int set_nonblocking(int fd, int *ret_flags)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		return -1;
	}
	*ret_flags = flags;
	return 0;
}

static int make_peer(struct mcp_lines *l, struct mcp_server *s)
{
	char name[32];
	uint64_t drawn;

	if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) {
		return -1;
	}
	(void)snprintf(name, sizeof name, "lines:%016llx", (unsigned long long)drawn);
	return mcp_peer_new(s, name, &l->to, &l->peer);
}

static int start_lines(struct mcp_lines *l, struct mcp_server *s)
{
	if (set_nonblocking(l->in, &l->in_flags) < 0 ||
	    set_nonblocking(l->out, &l->out_flags) < 0) {
		return -1;
	}
	if (l->in == l->out) {
		l->out = l->out_dup = fcntl(l->in, F_DUPFD_CLOEXEC, 3);
		if (l->out < 0) {
			return -1;
		}
	}
	return loop_watch(l->loop, l->in, EPOLLIN, in_ready, l, &l->reading) < 0 ||
	                       make_peer(l, s) < 0
	               ? -1
	               : 0;
}

int mcp_lines_new(struct mcp_server *s, struct loop *loop, int in, int out, loop_fn *closed,
                  void *arg, struct mcp_lines **ret, struct ssb_error *err)
{
	assert(in >= 0 && out >= 0);
	struct mcp_lines *l = calloc(1, sizeof *l);

	if (l == NULL) {
		return ssb_fail(err, SSB_E_SYS, ENOMEM, WHERE, "lines");
	}
	*l = (struct mcp_lines){ .to = { .send = lines_send, .end = lines_end },
		                 .loop = loop,
		                 .in = in,
		                 .out = out,
		                 .out_dup = -1,
		                 .in_flags = -1,
		                 .out_flags = -1,
		                 .closed = closed,
		                 .arg = arg };
	if (start_lines(l, s) < 0) {
		(void)ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot use fds %d and %d", in, out);
		mcp_lines_free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

/* Restores the flags of the open file, because other processes may use it, too. */
static void restore_flags(int fd, int flags)
{
	if (fd >= 0 && flags >= 0) {
		(void)fcntl(fd, F_SETFL, flags);
	}
}

void mcp_lines_free(struct mcp_lines *l)
{
	if (l == NULL) {
		return;
	}
	forget_peer(l);
	loop_unwatch(&l->reading);
	loop_unwatch(&l->writing);
	loop_untimer(&l->later);
	restore_flags(l->out, l->out_flags);
	restore_flags(l->in, l->in_flags);
	own_close(&l->out_dup);
	queue_clear(&l->queue);
	free(l->data);
	free(l);
}

uint64_t mcp_lines_dropped(const struct mcp_lines *l)
{
	return l->dropped;
}
