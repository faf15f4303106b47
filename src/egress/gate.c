/* gate.c - moves datagrams between the broker and connected UDP sockets.
 *
 * One thread serves all gates. As soon as the broker's end of a gate is watched, the thread owns
 * the gate, and frees it when the broker closes this end. A datagram that cannot be passed on at
 * once is lost, as on any network. */
#include "egress/gate.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "base/own.h"

#define TURN_DATAGRAMS 64 /* the most that one gate moves in one turn */
#define STACK_BYTES    (64 * 1024)
#define FINISH_MS      100
#define MOST_BYTES4    65507 /* the largest datagram over IPv4; IPv6 allows 20 bytes more */

struct gate {
	struct gate_end {
		struct gate *gate;
		int fd;
	} broker, server;
};

static int epoll_fd = -1;
static atomic_int n_gates;

static void gate_free(struct gate *g)
{
	if (g != NULL) {
		own_close(&g->broker.fd);
		own_close(&g->server.fd);
		free(g);
		atomic_fetch_sub(&n_gates, 1);
	}
}

OWN_FREEP(gate_freep, struct gate, gate_free)

/* Returns true if the error comes from the server or the network. Returns false if it concerns only
 * this datagram: it is too large, or a queue of this machine is full. */
static bool is_refusal(int error)
{
	return error != EAGAIN && error != EINTR && error != ENOBUFS && error != ENOMEM &&
	       error != EMSGSIZE;
}

static void tell_broker(const struct gate *g, enum gate_word word)
{
	(void)!send(g->broker.fd, &(char){ (char)word }, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_out(const struct gate *g, const char *datagram, size_t len)
{
	/* The first send() may report the error of an earlier datagram, for example that it was too
	 * large for the path. This datagram was then not sent, so try again. */
	for (int i = 0; i < 2; i++) {
		if (send(g->server.fd, datagram, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			return;
		}
		if (errno == EMSGSIZE && len > MOST_BYTES4) {
			tell_broker(g, GATE_TOO_LARGE);
			return;
		}
		if (is_refusal(errno)) {
			tell_broker(g, GATE_UNREACHABLE);
		} else if (errno != EMSGSIZE) {
			return;
		}
	}
}

static void move_outward(struct gate *g, char *buf)
{
	for (int i = 0; i < TURN_DATAGRAMS; i++) {
		ssize_t n = recv(g->broker.fd, buf, GATE_MESSAGE, MSG_DONTWAIT | MSG_TRUNC);
		if (n == 0 || (n < 0 && is_refusal(errno))) {
			gate_free(g);
			return;
		}
		if (n < 0) {
			return;
		}
		if (n <= GATE_MESSAGE && buf[0] == GATE_DATAGRAM) {
			send_out(g, buf + 1, (size_t)n - 1);
		}
	}
}

static void move_inward(const struct gate *g, char *buf)
{
	for (int i = 0; i < TURN_DATAGRAMS; i++) {
		ssize_t n = recv(g->server.fd, buf + 1, GATE_MESSAGE - 1, MSG_DONTWAIT);
		if (n >= 0) {
			buf[0] = GATE_DATAGRAM;
			(void)!send(g->broker.fd, buf, (size_t)n + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		} else if (is_refusal(errno)) {
			tell_broker(g, GATE_UNREACHABLE);
		} else {
			return;
		}
	}
}

static void *serve_gates(void *arg)
{
	static char buf[GATE_MESSAGE];
	struct epoll_event e;

	(void)arg;
	for (;;) {
		/* Take one event at a time, because a second one could belong to a gate that the
		 * first one has freed. */
		if (epoll_wait(epoll_fd, &e, 1, -1) != 1) {
			continue;
		}
		struct gate_end *end = e.data.ptr;
		if (end == &end->gate->broker) {
			move_outward(end->gate, buf);
		} else {
			move_inward(end->gate, buf);
		}
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	auto_fd fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0 || pthread_attr_init(&attr) != 0) {
		return;
	}
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	epoll_fd = fd; /* must be set before the thread reads it */
	if (pthread_create(&thread, &attr, serve_gates, NULL) == 0) {
		(void)steal_fd(&fd);
	} else {
		epoll_fd = -1;
	}
	(void)pthread_attr_destroy(&attr);
}

static int watch_end(struct gate_end *end)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = end };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, end->fd, &e);
}

/* Returns a new gate, or NULL with errno. Takes `udp`, even on failure. */
static struct gate *gate_new(int udp)
{
	auto_fd server = udp;
	struct gate *g = calloc(1, sizeof(*g));

	if (atomic_fetch_add(&n_gates, 1) >= MAX_UDP_FLOWS || epoll_fd < 0 || g == NULL) {
		atomic_fetch_sub(&n_gates, 1);
		free(g);
		errno = EMFILE;
		return NULL;
	}
	*g = (struct gate){ .broker = { g, -1 }, .server = { g, steal_fd(&server) } };
	return g;
}

int gate_open(int udp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int pair[2];

	assert(udp >= 0);
	(void)pthread_once(&once, start_thread);
	AUTO(gate_freep) struct gate *g = gate_new(udp);
	if (g == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
		return -1;
	}
	auto_fd theirs = pair[1];
	g->broker.fd = pair[0];
	if (watch_end(&g->broker) != 0) {
		return -1;
	}
	/* From here on the thread owns the gate. If the server's end cannot be watched, closing
	 * `theirs` ends the gate. */
	struct gate *served = steal_ptr(&g);
	return watch_end(&served->server) == 0 ? steal_fd(&theirs) : -1;
}

void gate_finish(void)
{
	for (int i = 0; i < FINISH_MS && atomic_load(&n_gates) > 0; i++) {
		(void)poll(NULL, 0, 1);
	}
}
