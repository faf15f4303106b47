/* race.c - connects to the first of several addresses that answers.
 *
 * Attempts are started RACE_STAGGER_MS apart, or at once when the last one has failed. All attempts
 * stay in the race until one of them is connected. */
#include "egress/race.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/own.h"

int64_t race_now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void race_interleave(struct race_target *targets, size_t n)
{
	struct race_target order[MAX_DIAL_ADDRESSES] = { 0 };
	size_t at[2] = { 0, 0 }; /* next index: [0] first target's family, [1] other family */

	assert(n <= MAX_DIAL_ADDRESSES);
	for (size_t i = 0; i < n; i++) {
		for (size_t turn = i; turn < i + 2; turn++) {
			size_t other = turn % 2;
			size_t *k = &at[other];
			while (*k < n && (address_is_v4(&targets[*k].address) !=
			                  address_is_v4(&targets[0].address)) != (other == 1)) {
				(*k)++;
			}
			if (*k < n) {
				order[i] = targets[(*k)++];
				break;
			}
		}
	}
	memcpy(targets, order, n * sizeof(*order));
}

/* Fills the sockaddr with the address that was judged; nothing is resolved again. */
static socklen_t fill_sockaddr(const struct race_target *t, uint16_t port,
                               union address_socket *ret)
{
	socklen_t len = address_to_socket(&t->address, port, ret);

	if (ret->any.sa_family == AF_INET6) {
		ret->in6.sin6_scope_id = t->scope;
	}
	return len;
}

/* Starts to connect. Returns the socket, which may already be connected, or -1 with errno. */
static int start_attempt(const struct race *r, const struct race_target *t)
{
	union address_socket to;
	socklen_t len = fill_sockaddr(t, r->port, &to);
	auto_fd fd = socket(to.any.sa_family, r->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		return -1;
	}
	if (r->type == SOCK_STREAM) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	}
	if (connect(fd, &to.any, len) < 0 && errno != EINPROGRESS) {
		return -1;
	}
	return steal_fd(&fd);
}

static void start_next(struct race *r, int64_t now)
{
	struct pollfd *p = &r->fds[r->started];

	*p = (struct pollfd){ .fd = start_attempt(r, &r->targets[r->started]), .events = POLLOUT };
	r->started++;
	if (p->fd < 0) {
		r->last_errno = errno;
		r->next_us = now;
		return;
	}
	r->running++;
	r->next_us = now + RACE_STAGGER_MS * 1000;
}

/* Returns the milliseconds until the next attempt or the deadline, rounded up so that the loop does
 * not spin. */
static int wait_ms(const struct race *r, int64_t now, int64_t deadline)
{
	int64_t until = r->started < r->n && r->next_us < deadline ? r->next_us : deadline;
	int64_t ms = (until - now + 999) / 1000;

	return ms <= 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

/* Checks an attempt with a second connect(), which returns the result of the first: 0, or -1 with
 * errno. This also marks the socket as connected, so that it cannot be connected to another
 * address. */
static int check_attempt(const struct race *r, size_t i)
{
	union address_socket to;
	socklen_t len = fill_sockaddr(&r->targets[i], r->port, &to);

	if (connect(r->fds[i].fd, &to.any, len) == 0 || errno == EISCONN) {
		return 0;
	}
	return -1;
}

/* Checks the sockets for which poll() has reported an event. Returns the index of a connected one,
 * or -1. */
static int sift_attempts(struct race *r)
{
	for (size_t i = 0; i < r->started; i++) {
		struct pollfd *p = &r->fds[i];
		if (p->fd < 0 || p->revents == 0) {
			continue;
		}
		if (check_attempt(r, i) == 0) {
			return (int)i;
		}
		if (errno == EALREADY || errno == EINPROGRESS || errno == EINTR) {
			continue;
		}
		r->last_errno = errno;
		own_close(&p->fd);
		r->running--;
		r->next_us = 0;
	}
	return -1;
}

static int run_race(struct race *r, int64_t deadline)
{
	for (;;) {
		int64_t now = race_now_us();
		if (now >= deadline) {
			r->last_errno = ETIMEDOUT;
			return -1;
		}
		if (r->started < r->n && now >= r->next_us) {
			start_next(r, now);
			continue;
		}
		if (r->running == 0) {
			return -1;
		}
		if (poll(r->fds, r->started, wait_ms(r, now, deadline)) > 0) {
			int winner = sift_attempts(r);
			if (winner >= 0) {
				return winner;
			}
		}
	}
}

void race_init(struct race *r, const struct race_target *targets, size_t n, uint16_t port, int type)
{
	assert(n > 0 && n <= MAX_DIAL_ADDRESSES);
	*r = (struct race){ .n = n, .port = port, .type = type };
	memcpy(r->targets, targets, n * sizeof(*targets));
}

int race_at_once(struct race *r)
{
	assert(r->n > 0 && r->started == 0);
	start_next(r, race_now_us());
	r->fds[0].revents = POLLOUT; /* set as if poll() had reported it, so that it is checked
	                                without waiting */
	if (sift_attempts(r) < 0) {
		return -1;
	}
	r->running--;
	return steal_fd(&r->fds[0].fd);
}

int race_aim(const struct race *r, bool speaks)
{
	assert(r->n > 0 && r->type == SOCK_STREAM);

	union address_socket to;
	socklen_t len = fill_sockaddr(&r->targets[0], r->port, &to);
	auto_fd fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1, off = 0;

	/* With TCP fast open, the kernel delays the SYN until the first send(). That send() has no
	 * data and there is no cookie, so the packet is an ordinary SYN. */
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) != 0 ||
	    connect(fd, &to.any, len) != 0) {
		return -1;
	}
	if (speaks) {
		/* Send the last acknowledgement of the handshake together with the first bytes.
		 * This saves a packet, and the server is woken only once. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
	}
	return steal_fd(&fd);
}

void race_done(struct race *r)
{
	for (size_t i = 0; i < r->started; i++) {
		own_close(&r->fds[i].fd);
	}
	r->started = 0;
}

int race_finish(struct race *r, int64_t deadline_us, size_t *tried)
{
	int fd = -1;
	int winner = run_race(r, deadline_us);

	*tried = r->started > 0 ? r->started - 1 : 0;
	if (winner >= 0) {
		fd = steal_fd(&r->fds[winner].fd);
		*tried = (size_t)winner;
	}
	race_done(r);
	errno = r->last_errno;
	return fd;
}

int race_connect(const struct race_target *targets, size_t n, uint16_t port, int type,
                 int64_t deadline_us, size_t *tried)
{
	struct race r;

	race_init(&r, targets, n, port, type);
	return race_finish(&r, deadline_us, tried);
}
