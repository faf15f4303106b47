/* test_splice.c - a flow (one direction of a relayed connection), between real sockets. */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/splice.h"

#define PIECES 40

/* Makes a TCP connection and returns its two ends. */
static void connect_up(int *ret_a, int *ret_b)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	auto_fd listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(listener >= 0 && a >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(connect(a, (struct sockaddr *)&in, len), 0);
	int b = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(b >= 0);
	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? a : b;
		assert_int_equal(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	}
	*ret_a = a;
	*ret_b = b;
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) == 1;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, 10000), 1);
}

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL) {
		n++;
	}
	(void)closedir(d);
	return n;
}

/* If true, send() fails as if the receiver's buffer were full. */
static bool full;

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	if (full) {
		errno = EAGAIN;
		return -1;
	}
	return __real_send(fd, data, len, flags);
}

/* A flow between two connections. The test uses their other ends. */
struct relay {
	int sender, from, to, reader;
	struct flow flow;
	uint64_t moved;
};

#define PIPED 1000

/* Starts a flow whose receiver's buffer is full, and whose pipe contains PIPED bytes. */
static void relay_start(struct relay *r)
{
	char data[PIPED] = { 0 };

	r->moved = 0;
	connect_up(&r->sender, &r->from);
	connect_up(&r->to, &r->reader);
	flow_init(&r->flow, r->from, r->to);
	while (__real_send(r->to, data, sizeof(data), MSG_DONTWAIT) > 0) {
	}
	assert_int_equal(__real_send(r->sender, data, sizeof(data), 0), sizeof(data));
	wait_for(r->from, POLLIN);
	(void)flow_turn(&r->flow, 1U << 20, &r->moved);
	assert_int_equal(r->flow.piped, sizeof(data));
}

/* Reads from the receiver's end until the flow can send again. */
static void relay_read(const struct relay *r)
{
	char data[PIPED];

	do {
		wait_for(r->reader, POLLIN);
	} while (recv(r->reader, data, sizeof(data), 0) > 0 && !is_ready(r->to, POLLOUT));
}

static void relay_stop(struct relay *r)
{
	flow_done(&r->flow);
	(void)close(r->sender);
	(void)close(r->from);
	(void)close(r->to);
	(void)close(r->reader);
}

/* The flow has data in its pipe, and its sender sends more pieces than a pipe can contain. The flow
 * passes some of them on, and then the receiver blocks. The flow must not open a second pipe. */
static void a_flow_has_one_pipe(void **state)
{
	char data[50] = { 0 };
	struct relay r;
	auto_fd other = -1, others = -1;

	connect_up(&other, &others);
	relay_start(&r);
	/* the sends to `other` keep the pieces apart in the kernel's memory */
	for (int i = 0; i < PIECES; i++) {
		assert_int_equal(__real_send(r.sender, data, sizeof(data), 0), sizeof(data));
		assert_int_equal(__real_send(other, data, 1, 0), 1);
	}
	relay_read(&r);
	size_t before = open_fds();
	full = true;
	r.flow.readable = true;
	(void)flow_turn(&r.flow, 1U << 20, &r.moved);
	full = false;
	assert_true(r.moved > PIPED);
	assert_int_equal(open_fds(), before);
	relay_stop(&r);
}

/* If the limit becomes smaller than the data in the pipe, only as many bytes as the limit are
 * sent. */
static void no_more_than_may_be(void **state)
{
	struct relay r;

	relay_start(&r);
	relay_read(&r);
	(void)flow_turn(&r.flow, 10, &r.moved);
	assert_int_equal(r.moved, 10);
	assert_int_equal(r.flow.piped, PIPED - 10);
	relay_stop(&r);
}

/* The flow must pass on the data before and after an out-of-band byte. splice() stops at this byte,
 * and so does a recv() that has already read something. */
static void urgent_data_is_passed(void **state)
{
	char data[5000] = { 0 };
	struct relay r = { .moved = 0 };

	connect_up(&r.sender, &r.from);
	connect_up(&r.to, &r.reader);
	flow_init(&r.flow, r.from, r.to);
	assert_int_equal(__real_send(r.sender, data, sizeof(data), 0), sizeof(data));
	assert_int_equal(__real_send(r.sender, "!", 1, MSG_OOB), 1);
	assert_int_equal(__real_send(r.sender, data, sizeof(data), 0), sizeof(data));
	wait_for(r.from, POLLPRI);
	r.flow.bulk = r.flow.urgent = true;
	(void)flow_turn(&r.flow, 1U << 20, &r.moved);
	assert_int_equal(r.moved, 2 * sizeof(data));
	assert_false(r.flow.urgent);
	relay_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_has_one_pipe),
		cmocka_unit_test(no_more_than_may_be),
		cmocka_unit_test(urgent_data_is_passed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
