/* otlp_http.c - HTTP/1.1 for one request on one connection. The head of the
 * answer is read by wire/connect_reply, which takes one form of it only; the
 * body decides nothing and is given a moment. */
#include "otel/otlp_http.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "os/clock.h"
#include "wire/connect_reply.h"

#define READ_BYTES 4096

static void fail(struct otlp_reply *r, bool retry, const char *what, int error)
{
	r->status = 0;
	r->retry = retry;
	snprintf(r->why, sizeof(r->why), "%s%s%s", what, error != 0 ? ": " : "",
	         error != 0 ? strerror(error) : "");
}

/* 0, or an errno: ETIMEDOUT at the deadline. */
static int wait_for(int fd, short events, uint64_t deadline_ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		uint64_t now = clock_ms();
		if (now >= deadline_ms) {
			return ETIMEDOUT;
		}
		int n = poll(&p, 1, (int)(deadline_ms - now));
		if (n > 0) {
			return 0;
		}
		if (n < 0 && errno != EINTR) {
			return errno;
		}
	}
}

static int connect_one(const struct addrinfo *a, uint64_t deadline_ms, int *ret_error)
{
	int error = 0;
	socklen_t len = sizeof(error);
	auto_fd fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		*ret_error = errno;
		return -1;
	}
	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
		error = errno;
		if (error == EINPROGRESS) {
			error = wait_for(fd, POLLOUT, deadline_ms);
			if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
				error = errno;
			}
		}
	}
	if (error != 0) {
		*ret_error = error;
		return -1;
	}
	return steal_fd(&fd);
}

static int dial(const struct otlp_target *t, uint64_t deadline_ms, struct otlp_reply *r)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int error = 0;
	int fd = -1;

	int rc = getaddrinfo(t->host, t->port, &hints, &found);
	if (rc != 0) {
		fail(r, true, gai_strerror(rc), 0);
		return -1;
	}
	for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
		fd = connect_one(a, deadline_ms, &error);
	}
	freeaddrinfo(found);
	if (fd < 0) {
		fail(r, true, "connect", error);
	}
	return fd;
}

static void add_header(void *arg, const char *name, const char *value)
{
	buf_addf(arg, "%s: %s\r\n", name, value);
}

static void write_head(struct buf *out, const struct otlp_target *t, size_t len)
{
	bool v6 = strchr(t->host, ':') != NULL;

	buf_addf(out, "POST %s HTTP/1.1\r\nHost: %s%s%s:%s\r\n", t->path, v6 ? "[" : "", t->host,
	         v6 ? "]" : "", t->port);
	otlp_headers(t, add_header, out);
	buf_addf(out, "Content-Length: %zu\r\nConnection: close\r\n\r\n", len);
}

/* 0, or an errno. */
static int send_all(int fd, const char *data, size_t len, uint64_t deadline_ms)
{
	while (len > 0) {
		int error = wait_for(fd, POLLOUT, deadline_ms);
		if (error != 0) {
			return error;
		}
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return errno;
		}
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The next bytes; 0 at the end or where no more fit, -1 with an errno. */
static ssize_t receive(int fd, struct buf *in, uint64_t deadline_ms, int *ret_error)
{
	char data[READ_BYTES];
	ssize_t n;

	do {
		*ret_error = wait_for(fd, POLLIN, deadline_ms);
		if (*ret_error != 0) {
			return -1;
		}
		n = recv(fd, data, sizeof(data), 0);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0) {
		*ret_error = errno;
		return -1;
	}
	buf_add(in, data, (size_t)n);
	return in->failed ? 0 : n;
}

/* The head; its length, or 0 with the failure in `r`. */
static size_t receive_head(int fd, struct buf *in, uint64_t deadline_ms, struct otlp_reply *r)
{
	struct connect_reply parser;
	enum connect_verdict verdict = CONNECT_MORE;
	size_t used = 0;
	int error = 0;

	connect_reply_init(&parser);
	while (verdict == CONNECT_MORE) {
		size_t before = in->len;
		ssize_t n = receive(fd, in, deadline_ms, &error);
		if (n <= 0) {
			fail(r, true,
			     n < 0 ? "no answer"
			           : "the connection was closed without an "
			             "answer",
			     error);
			return 0;
		}
		verdict = connect_reply_feed(&parser, in->data + before, (size_t)n, &used);
	}
	if (verdict == CONNECT_BROKEN) {
		fail(r, false, "what answers there is no HTTP server", 0);
		return 0;
	}
	r->status = parser.status;
	return parser.len;
}

static void receive_body(int fd, struct buf *in, size_t head, uint64_t deadline_ms)
{
	uint64_t until = clock_ms() + OTLP_BODY_MS;
	int64_t length = otlp_content_length(in->data, head);
	int error = 0;

	until = until < deadline_ms ? until : deadline_ms;
	while ((length < 0 || in->len - head < (size_t)length) &&
	       receive(fd, in, until, &error) > 0) {
	}
}

void otlp_http_post(const struct otlp_target *t, struct otlp_body body, uint64_t deadline_ms,
                    struct otlp_reply *ret)
{
	auto_fd fd = dial(t, deadline_ms, ret);
	auto_buf out;
	auto_buf in;

	buf_init(&out, (size_t)OTLP_MAX_URL + 2 * OTLP_MAX_VALUE);
	buf_init(&in, OTLP_MAX_REPLY);
	if (fd < 0) {
		return;
	}
	write_head(&out, t, body.len);
	if (out.failed) {
		fail(ret, false, "the headers are too long", 0);
		return;
	}
	int error = send_all(fd, out.data, out.len, deadline_ms);
	error = error == 0 ? send_all(fd, body.data, body.len, deadline_ms) : error;
	explicit_bzero(out.data, out.len);
	if (error == ETIMEDOUT) {
		fail(ret, true, "send", error);
		return;
	}
	/* Who closes early may still have said why. */
	size_t head = receive_head(fd, &in, deadline_ms, ret);
	if (head > 0) {
		ret->retry_after_ms = otlp_retry_after(in.data, head);
		receive_body(fd, &in, head, deadline_ms);
		otlp_reply_body(ret, t, in.data + head, in.len - head);
	}
}
