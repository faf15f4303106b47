#include "egress/broker.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/broker_priv.h"
#include "os/clone.h"
#include "os/landlock.h"
#include "os/seccomp.h"

#define TICK_MS 1000
#define HOLD_MS 10 /* an event, at most */
#define OWN_FDS 96 /* what is neither a listener nor a connection: DNS clients, sockets */

static void tell_held(struct broker *b)
{
	for (size_t i = 0; i < b->n_held; i++) {
		/* The supervisor's socket is deep; a flood beyond it loses lines, not
		 * walls: the denial stands. */
		(void)!send(b->c->events, &b->held[i], sizeof(b->held[i]),
		            MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	b->n_held = 0;
}

void broker_report(struct broker *b, const struct egress_event *e)
{
	if (b->n_held == 0) {
		b->held_ms = clock_ms();
	}
	b->held[b->n_held++] = *e;
	/* A denial is told at once. What went well can wait until there is less to
	 * do: waking the supervisor costs as much as half a connection. */
	if (e->kind == EGRESS_DENIED || e->kind == EGRESS_UNKNOWN || b->n_held == HELD_EVENTS) {
		tell_held(b);
	}
}

int broker_watch(struct broker *b, struct source *s)
{
	struct epoll_event e = { .data.ptr = s, .events = EPOLLIN };

	/* Both ends of a connection are tried until they block. */
	if (s->kind == SOURCE_CLIENT || s->kind == SOURCE_SERVER) {
		e.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (s->room_wanted ? EPOLLOUT : 0U);
	}
	s->watched = epoll_ctl(b->epoll, EPOLL_CTL_ADD, s->fd, &e) == 0;
	return s->watched ? 0 : -1;
}

void broker_want_room(struct broker *b, struct source *s)
{
	struct epoll_event e = { .data.ptr = s,
		                 .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

	if (!s->room_wanted && s->watched) {
		(void)epoll_ctl(b->epoll, EPOLL_CTL_MOD, s->fd, &e);
	}
	s->room_wanted = true; /* one that is not watched yet will be with it */
}

bool address_dialled(int fd, struct address *ret_address, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at = { 0 };
	socklen_t len = sizeof(at);
	struct address a = { { 0 } };

	if (getsockname(fd, &at.any, &len) != 0) {
		return false;
	}
	if (at.any.sa_family == AF_INET) {
		a.b[10] = a.b[11] = 0xff;
		memcpy(a.b + 12, &at.in.sin_addr, 4);
		*ret_port = ntohs(at.in.sin_port);
	} else {
		memcpy(a.b, &at.in6.sin6_addr, 16);
		*ret_port = ntohs(at.in6.sin6_port);
	}
	*ret_address = a;
	return true;
}

static void hear_dialler(struct broker *b)
{
	struct dial_reply reply = { 0 };
	struct msg_fds fds = { .n = 0 };
	ssize_t n = msg_recv(b->c->dial, &reply, sizeof(reply), &fds);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n < 0 && errno == EMSGSIZE) {
		/* No fd was free for the one that came along; the words came. */
		reply.result = DIAL_BUSY;
		conn_dialled(b, &reply, -1);
		return;
	}
	if (n != (ssize_t)sizeof(reply)) {
		_exit(1); /* without it there is nothing to do */
	}
	int fd = fds.n == 1 ? fds.v[0] : -1;
	if (!spare_arrived(b, &reply, fd) && !udp_dialled(b, &reply, fd)) {
		conn_dialled(b, &reply, fd);
	}
}

static void turn(struct broker *b, struct source *s, uint32_t events)
{
	switch (s->kind) {
	case SOURCE_LISTENER:
		if (s->listener == LISTEN_DNS_UDP) {
			dns_datagrams(b, s->fd);
		} else if (s->listener == LISTEN_DNS_TCP) {
			dns_accept(b, s->fd);
		} else if (s->listener == LISTEN_UDP) {
			udp_datagrams(b, s->fd);
		} else {
			conn_accept(b, s->fd);
		}
		break;
	case SOURCE_DNS_CLIENT:
		dns_turn(b, s);
		break;
	case SOURCE_CLIENT:
	case SOURCE_SERVER:
		conn_event(b, s, events);
		break;
	case SOURCE_UDP_SERVER:
		udp_turn(b, s->owner);
		break;
	case SOURCE_DIAL:
		hear_dialler(b);
		break;
	case SOURCE_EVENTS:
		b->stopping = true; /* the supervisor says no more than that */
		break;
	}
}

/* Before the first byte of the skill is read. */
static void confine(struct broker_config *c)
{
	struct ssb_error err = { 0 };
	struct rlimit files;
	int abi = landlock_abi();
	auto_fd rules = abi > 0 ? landlock_new(abi) : -1;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
		/* Two sockets each and room for pipes, beside the listeners. Past
		 * the limit accept() would fail, and be tried again without end. */
		uint64_t ours = c->listeners->n + OWN_FDS;
		uint64_t free = files.rlim_cur > ours ? files.rlim_cur - ours : 0;
		if (c->max_connections > free / 8 * 3) {
			c->max_connections = free / 8 * 3;
		}
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    (abi > 0 && (rules < 0 || landlock_enforce(rules) != 0)) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || seccomp_load_broker(&err) != 0) {
		_exit(1);
	}
}

static void watch_all(struct broker *b, struct source *listeners)
{
	static struct source dial, events;
	struct listeners *l = b->c->listeners;

	dial = (struct source){ .kind = SOURCE_DIAL, .fd = b->c->dial };
	events = (struct source){ .kind = SOURCE_EVENTS, .fd = b->c->events };
	if (broker_watch(b, &dial) != 0 || broker_watch(b, &events) != 0) {
		_exit(1);
	}
	for (size_t i = 0; i < l->n; i++) {
		listeners[i] = (struct source){ .kind = SOURCE_LISTENER,
			                        .fd = l->fd[i],
			                        .listener = l->kind[i] };
		if (broker_watch(b, &listeners[i]) != 0) {
			_exit(1);
		}
	}
}

_Noreturn void broker_main(struct broker_config *config)
{
	static struct broker b;
	struct source *listeners = calloc(config->listeners->n, sizeof(*listeners));
	uint64_t tick = clock_ms() + TICK_MS;

	b.c = config;
	b.epoll = epoll_create1(EPOLL_CLOEXEC);
	(void)signal(SIGPIPE, SIG_IGN);
	if (b.epoll < 0 || listeners == NULL) {
		_exit(1);
	}
	udp_init(&b);
	watch_all(&b, listeners);
	confine(config);
	while (!b.stopping) {
		struct epoll_event ready[64];
		int wait = b.more ? 0 : b.n_held > 0 ? HOLD_MS : TICK_MS;
		int n = epoll_wait(b.epoll, ready, 64, wait);

		for (int i = 0; i < n; i++) {
			turn(&b, ready[i].data.ptr, ready[i].events);
		}
		conn_sweep(&b);
		udp_sweep(&b);
		uint64_t now = clock_ms();
		if (b.n_held > 0 && now - b.held_ms >= HOLD_MS) {
			tell_held(&b);
		}
		if (now >= tick) {
			tick = now + TICK_MS;
			conn_tick(&b, now);
			udp_tick(&b, now);
			spare_tick(&b);
		}
	}
	conn_close_all(&b);
	udp_close_all(&b);
	tell_held(&b);
	_exit(0);
}
