/* linger - one thread connects a socket to an address outside of the plan while another thread
 * closes the socket. Its send buffer is full and SO_LINGER is set, so the process that closes it
 * last waits in close(). Prints the longest time in ms that a connect() took. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS    1000000
#define SECONDS   4 /* of trying */
#define LINGERS_S 3

static atomic_int begun, done;
static int sock;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *closer(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&begun) < i) {
			sched_yield();
		}
		/* Some time after connect() begins, the observer has a copy of the socket for a
		 * moment. This delay varies, so that some close() falls into that moment. */
		for (long end = now_ns() + i % 100 * 1000; now_ns() < end;) {
		}
		close(sock);
		atomic_store(&done, i);
	}
	return NULL;
}

/* Returns a new connected socket whose send buffer is full; *ret_peer is the other end. */
static int full_socket(int server, const struct sockaddr_in *at, int *ret_peer)
{
	static const char junk[4096];
	struct linger linger = { 1, LINGERS_S };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0) {
		return -1;
	}
	*ret_peer = accept(server, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fd, junk, sizeof(junk), MSG_DONTWAIT) > 0) {
	}
	return fd;
}

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, away = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int small = 4096, server = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	long longest = 0, last = now_ns() + SECONDS * 1000000000L;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	away.sin_addr.s_addr = inet_addr("203.0.113.9");
	away.sin_port = htons(80);
	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(server, (struct sockaddr *)&at, len) != 0 || listen(server, 8) != 0 ||
	    getsockname(server, (struct sockaddr *)&at, &len) != 0 ||
	    pthread_create(&thread, NULL, closer, NULL) != 0) {
		return 1;
	}
	for (int i = 1; i <= ROUNDS && now_ns() < last && longest < LINGERS_S * 900; i++) {
		int peer, fd = full_socket(server, &at, &peer);
		if (fd < 0) {
			return 2;
		}
		sock = fd;
		atomic_store(&begun, i);
		long begin = now_ns();
		(void)connect(fd, (struct sockaddr *)&away, sizeof(away));
		long took = (now_ns() - begin) / 1000000;
		longest = took > longest ? took : longest;
		close(peer); /* without a peer, the socket does not linger in close() */
		while (atomic_load(&done) < i) {
			sched_yield();
		}
	}
	printf("%ld\n", longest);
	return 0;
}
