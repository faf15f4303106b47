/* net_client.c - the client of the network bench. It runs inside the sandbox or namespace that is
 * measured.
 *
 *   net_client HOST PORT measure CONNECTS BYTES
 *   net_client HOST PORT hold COUNT one|all     opened one after another, or all at once
 *
 * The name is looked up once, and that time is measured separately. Prints one JSON object. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net_hello.h"

#define MAX_HELD 4096
#define CHUNK    (256 * 1024)
#define WARM_UP  5
#define PATIENCE 20000 /* ms that each() waits for all connections */

static struct sockaddr_storage server;
static socklen_t server_len;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "net_client: %s: %s\n", what, errno != 0 ? strerror(errno) : "ended early");
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double look_up(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	double from = now_us();
	int r = getaddrinfo(host, port, &hints, &list);

	if (r != 0) {
		fprintf(stderr, "net_client: %s: %s\n", host, gai_strerror(r));
		exit(1);
	}
	double took = now_us() - from;
	memcpy(&server, list->ai_addr, list->ai_addrlen);
	server_len = list->ai_addrlen;
	freeaddrinfo(list);
	return took;
}

static int make_socket(int flags)
{
	int fd = socket(server.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	int on = 1;

	if (fd >= 0) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	return fd;
}

static void send_hello(int fd, enum hello_command command, uint64_t count)
{
	uint8_t hello[HELLO_LEN];

	hello_make(hello, command, count);
	errno = 0;
	if (send(fd, hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello)) {
		die("send");
	}
}

static int open_with(enum hello_command command, uint64_t count)
{
	int fd = make_socket(0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&server, server_len) != 0) {
		die("connect");
	}
	send_hello(fd, command, count);
	return fd;
}

/* ---- measure --------------------------------------------------------------- */

static double connect_once(void)
{
	char byte;
	double from = now_us();
	int fd = open_with(HELLO_ECHO, 0);

	errno = 0;
	if (recv(fd, &byte, 1, 0) != 1) {
		die("first byte");
	}
	double took = now_us() - from;
	(void)close(fd);
	return took;
}

static double transfer(enum hello_command command, uint64_t bytes)
{
	static char chunk[CHUNK];
	double from = now_us();
	int fd = open_with(command, bytes);
	uint64_t left = bytes;

	while (left > 0) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		errno = 0;
		ssize_t n = command == HELLO_UP ? send(fd, chunk, want, MSG_NOSIGNAL)
		                                : recv(fd, chunk, want, 0);
		if (n <= 0) {
			die("transfer");
		}
		left -= (uint64_t)n;
	}
	errno = 0;
	if (command == HELLO_UP && recv(fd, chunk, 1, 0) != 1) {
		die("last byte");
	}
	(void)close(fd);
	return (now_us() - from) / 1e6;
}

static void measure(double looked_up, unsigned connects, uint64_t bytes)
{
	for (int i = 0; i < WARM_UP; i++) {
		(void)connect_once();
	}
	printf("{\"lookup_us\": %.1f, \"connect_us\": [", looked_up);
	for (unsigned i = 0; i < connects; i++) {
		printf("%s%.1f", i == 0 ? "" : ", ", connect_once());
	}
	printf("], \"down_s\": %.6f", transfer(HELLO_DOWN, bytes));
	printf(", \"up_s\": %.6f, \"bytes\": %llu}\n", transfer(HELLO_UP, bytes),
	       (unsigned long long)bytes);
}

/* ---- hold ------------------------------------------------------------------ */

static struct pollfd held[MAX_HELD];
static unsigned n_held;

static void lose(unsigned i)
{
	(void)close(held[i].fd);
	held[i].fd = -1;
}

/* Waits for `events` on every connection, and calls `step` for each connection when it is ready. A
 * connection that fails is closed. Returns the number of connections whose `step` succeeded. */
static unsigned each(short events, bool (*step)(int))
{
	double until = now_us() + PATIENCE * 1e3;
	unsigned waiting = 0, passed = 0;

	for (unsigned i = 0; i < n_held; i++) {
		held[i].events = events;
		waiting += held[i].fd >= 0 ? 1 : 0;
	}
	while (waiting > 0 && now_us() < until) {
		if (poll(held, n_held, 100) <= 0) {
			continue;
		}
		for (unsigned i = 0; i < n_held; i++) {
			if (held[i].fd < 0 || held[i].revents == 0 || held[i].events == 0) {
				continue;
			}
			waiting--;
			held[i].events = 0;
			if (step(held[i].fd)) {
				passed++;
			} else {
				lose(i);
			}
		}
	}
	for (unsigned i = 0; i < n_held; i++) {
		if (held[i].fd >= 0 && held[i].events != 0) {
			lose(i);
		}
	}
	return passed;
}

static bool say_hello(int fd)
{
	uint8_t hello[HELLO_LEN];

	hello_make(hello, HELLO_ECHO, 0);
	return send(fd, hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello);
}

static bool hear_byte(int fd)
{
	char byte;
	return recv(fd, &byte, 1, 0) == 1;
}

static bool say_number(int fd)
{
	return send(fd, &fd, sizeof(fd), MSG_NOSIGNAL) == (ssize_t)sizeof(fd);
}

static bool hear_number(int fd)
{
	int got = -1;
	return recv(fd, &got, sizeof(got), MSG_WAITALL) == (ssize_t)sizeof(got) && got == fd;
}

static void hold(unsigned count, bool at_once)
{
	double from = now_us();
	unsigned opened;

	for (unsigned i = 0; i < count; i++) {
		int fd = make_socket(at_once ? SOCK_NONBLOCK : 0);
		if (fd < 0) {
			die("socket");
		}
		held[n_held++] = (struct pollfd){ .fd = fd };
		if (connect(fd, (struct sockaddr *)&server, server_len) != 0 &&
		    errno != EINPROGRESS) {
			lose(i);
		} else if (!at_once && !(say_hello(fd) && hear_byte(fd))) {
			lose(i);
		}
	}
	if (at_once) {
		(void)each(POLLOUT, say_hello);
		opened = each(POLLIN, hear_byte);
	} else {
		opened = 0;
		for (unsigned i = 0; i < n_held; i++) {
			opened += held[i].fd >= 0 ? 1 : 0;
		}
	}
	double took = (now_us() - from) / 1e6;
	unsigned echoed = 0;
	for (int round = 0; round < 2; round++) { /* all connections stay open in both rounds */
		usleep(200000);
		(void)each(POLLOUT, say_number);
		echoed = each(POLLIN, hear_number);
	}
	printf("{\"asked\": %u, \"opened\": %u, \"echoed\": %u, \"seconds\": %.3f}\n", count,
	       opened, echoed, took);
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
	if (argc == 6) {
		double looked_up = look_up(argv[1], argv[2]);
		unsigned long n = strtoul(argv[4], NULL, 10);
		raise_files();
		if (strcmp(argv[3], "measure") == 0 && n > 0) {
			measure(looked_up, (unsigned)n, strtoull(argv[5], NULL, 10));
			return 0;
		}
		if (strcmp(argv[3], "hold") == 0 && n > 0 && n <= MAX_HELD) {
			hold((unsigned)n, strcmp(argv[5], "all") == 0);
			return 0;
		}
	}
	fputs("usage: net_client HOST PORT measure CONNECTS BYTES | hold COUNT one|all\n", stderr);
	return 2;
}
