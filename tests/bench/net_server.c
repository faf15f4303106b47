/* net_server.c - the server of the network bench.
 *
 *   net_server PORT...      listens on 127.0.0.1, prints "ready", and runs until stdin ends
 *
 * All echo connections share one thread. A thread for each connection would make the direct path
 * look slow, and everything is compared with that path. Bulk connections have a thread each. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_hello.h"

#define MAX_PORTS 8
#define CHUNK     (256 * 1024)

struct peer {
	int fd;
	bool listener;
	size_t have;
	uint8_t hello[HELLO_LEN];
};

static int epoll;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static void watch(int fd, bool listener)
{
	struct peer *p = calloc(1, sizeof(*p));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = p };

	if (p == NULL) {
		die("net_server: memory");
	}
	p->fd = fd;
	p->listener = listener;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
		die("net_server: epoll_ctl");
	}
}

static void drop(struct peer *p)
{
	(void)close(p->fd);
	free(p);
}

static void *bulk(void *arg)
{
	struct peer *p = arg;
	bool down = p->hello[HELLO_RANDOM] == HELLO_DOWN;
	uint64_t left;
	char *chunk = calloc(1, CHUNK);

	memcpy(&left, p->hello + HELLO_RANDOM + 1, sizeof(left));
	while (chunk != NULL && left > 0) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		ssize_t n =
		        down ? send(p->fd, chunk, want, MSG_NOSIGNAL) : recv(p->fd, chunk, want, 0);
		if (n <= 0) {
			break;
		}
		left -= (uint64_t)n;
	}
	if (!down && left == 0) {
		(void)!send(p->fd, "!", 1, MSG_NOSIGNAL);
	}
	free(chunk);
	drop(p);
	return NULL;
}

static void start_bulk(struct peer *p)
{
	pthread_t thread;

	if (epoll_ctl(epoll, EPOLL_CTL_DEL, p->fd, NULL) != 0 ||
	    pthread_create(&thread, NULL, bulk, p) != 0) {
		die("net_server: thread");
	}
	(void)pthread_detach(thread);
}

/* Answers one peer. Its messages are smaller than a socket buffer, so that sending never blocks for
 * long. */
static void turn(struct peer *p)
{
	char buf[4096];

	if (p->have < HELLO_LEN) {
		ssize_t n = recv(p->fd, p->hello + p->have, HELLO_LEN - p->have, 0);
		if (n <= 0) {
			drop(p);
			return;
		}
		p->have += (size_t)n;
		if (p->have < HELLO_LEN) {
			return;
		}
		if (p->hello[HELLO_RANDOM] != HELLO_ECHO) {
			start_bulk(p);
		} else if (send(p->fd, "!", 1, MSG_NOSIGNAL) != 1) {
			drop(p);
		}
		return;
	}
	ssize_t n = recv(p->fd, buf, sizeof(buf), 0);
	if (n <= 0 || send(p->fd, buf, (size_t)n, MSG_NOSIGNAL) != n) {
		drop(p);
	}
}

static void listen_at(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 4096) != 0) {
		die("net_server: listen");
	}
	watch(fd, true);
}

static void admit(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int on = 1;

	if (fd >= 0) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		watch(fd, false);
	} else if (errno != ECONNABORTED && errno != EINTR) {
		die("net_server: accept");
	}
}

static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int main(int argc, char **argv)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || argc < 2 || argc > MAX_PORTS + 1) {
		fputs("usage: net_server PORT...\n", stderr);
		return 2;
	}
	raise_files();
	for (int i = 1; i < argc; i++) {
		listen_at(argv[i]);
	}
	struct epoll_event end = { .events = EPOLLIN | EPOLLHUP, .data.ptr = NULL };
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &end) != 0) {
		die("net_server: stdin");
	}
	(void)!write(1, "ready\n", 6);
	for (;;) {
		struct epoll_event ready[64];
		int n = epoll_wait(epoll, ready, 64, -1);
		for (int i = 0; i < n; i++) {
			struct peer *p = ready[i].data.ptr;
			if (p == NULL) {
				return 0;
			}
			if (p->listener) {
				admit(p->fd);
			} else {
				turn(p);
			}
		}
	}
}
