/* broker.c - the event loop of the process that reads the skill's network bytes.
 *
 * Theory of operation. The supervisor forks the broker with the listeners of the sandbox's network
 * and with two sockets: one to the dialler, one to the supervisor. The broker confines itself
 * (confine_to_fds()) before it reads a byte of the skill, and the skill does not start before that.
 * From then on one thread waits in epoll: handle_event() passes each event to the file that handles
 * its source, and at the end of each round the ended connections are freed. A connection is
 * reported before its first byte is passed on. Reports and relaying happen in the same thread, so
 * no byte is carried that is not on record.
 *
 * The broker may: accept connections of the sandbox's network, answer DNS from the table, read
 * first bytes and HTTP requests, relay with splice(), ask the dialler to connect by a rule, and use
 * a spare (broker_spare.c).
 *
 * The broker must not: open a file, make a socket, connect one, hold a UDP socket of the host's
 * network (gate.h), start a program, or see a secret. It must not send with MSG_FASTOPEN either: if
 * a server has reset a socket, this flag would connect the socket again, in the host's network.
 * Landlock and a seccomp filter enforce this (confine.c, tools/seccomp_rules.c); the environment
 * and the proxy's password are wiped after the fork (egress.c). Neither the dialler nor the
 * supervisor trusts the broker: the dialler checks each request as if the skill had written it, and
 * the supervisor treats each report as text. */
#include "egress/broker.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/broker_priv.h"
#include "os/clone.h"
#include "os/confine.h"

#define TICK_MS        1000
#define TELL_MS        100  /* interval of EGRESS_MOVED in a metered run */
#define DNS_PER_SECOND 500  /* questions that are answered; further ones are dropped */
#define FINISH_MS      1000 /* how long the bytes of a skill that has ended may still be carried */
#define OWN_FDS        96 /* fds for other uses than listeners and connections: DNS clients, sockets */

void broker_report(struct broker *b, const struct egress_event *e)
{
	/* If the supervisor does not read, this call blocks, so that nothing happens that is not
	 * recorded. The supervisor never waits for the broker. If the supervisor has ended, the
	 * broker ends, too. */
	struct egress_event out = *e;

	out.inward = e->reason == REASON_BYTE_LIMIT && b->bytes_out < b->c->max_bytes_out;
	(void)!send(b->c->events, &out, sizeof(out), MSG_NOSIGNAL);
}

/* Both ends of a connection are edge-triggered: they are read and written until they block. */
#define END_EVENTS (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET)

int broker_watch(struct broker *b, struct source *s)
{
	struct epoll_event e = { .data.ptr = s, .events = EPOLLIN };

	if (s->kind == SOURCE_CLIENT || s->kind == SOURCE_SERVER) {
		e.events = END_EVENTS | (s->room_wanted ? EPOLLOUT : 0U);
	}
	s->watched = epoll_ctl(b->epoll, EPOLL_CTL_ADD, s->fd, &e) == 0;
	return s->watched ? 0 : -1;
}

void broker_unwatch(struct broker *b, struct source *s)
{
	if (s->watched) {
		(void)epoll_ctl(b->epoll, EPOLL_CTL_DEL, s->fd, NULL);
		s->watched = false;
	}
}

void broker_want_room(struct broker *b, struct source *s)
{
	struct epoll_event e = { .data.ptr = s, .events = END_EVENTS | EPOLLOUT };

	if (!s->room_wanted && s->watched) {
		(void)epoll_ctl(b->epoll, EPOLL_CTL_MOD, s->fd, &e);
	}
	s->room_wanted = true; /* if the source is not watched yet, broker_watch() adds EPOLLOUT */
}

bool conn_address_dialled(int fd, struct address *ret_address, uint16_t *ret_port)
{
	union address_socket at = { 0 };
	socklen_t len = sizeof(at);

	return getsockname(fd, &at.any, &len) == 0 &&
	       address_from_socket(&at, ret_address, ret_port);
}

/* Returns the socket of a reply that has at most one, or -1 if it has none. */
static int take_only(const struct msg_fds *fds)
{
	return fds->n == 1 ? fds->v[0] : -1;
}

static void hear_dialler(struct broker *b)
{
	struct dial_reply reply = { 0 };
	struct msg_fds fds = { .n = 0 };
	ssize_t n = msg_fds_recv(b->c->dial, &reply, sizeof(reply), &fds);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n < 0 && errno == EMSGSIZE) {
		/* The message arrived, but its socket did not, because no fd was free. */
		reply.result = DIAL_BUSY;
	} else if (n != (ssize_t)sizeof(reply) || (reply.id.kind != DIAL_SPARES && fds.n > 1)) {
		/* The dialler has ended or misbehaves: only a reply with spares may have more than
		 * one socket. The broker cannot work without the dialler. */
		_exit(1);
	}
	switch (reply.id.kind) {
	case DIAL_TCP:
		conn_dialled(b, &reply, take_only(&fds));
		break;
	case DIAL_UDP:
		broker_udp_dialled(b, &reply, take_only(&fds));
		break;
	case DIAL_SPARES:
		spare_arrived(b, &reply, &fds);
		break;
	}
}

/* A byte from the supervisor means that the skill has ended. The end of the socket means that the
 * run has ended. */
static void hear_supervisor(struct broker *b)
{
	char word;

	if (recv(b->c->events, &word, 1, MSG_DONTWAIT) == 1) {
		b->finish_ms = clock_ms() + FINISH_MS;
	} else {
		b->stopping = true;
	}
}

static void handle_event(struct broker *b, struct source *s, uint32_t events)
{
	switch (s->kind) {
	case SOURCE_LISTENER:
		if (s->listener == LISTEN_DNS_UDP) {
			broker_dns_datagrams(b, s->fd);
		} else if (s->listener == LISTEN_DNS_TCP) {
			broker_dns_accept(b, s);
		} else if (s->listener == LISTEN_UDP) {
			broker_udp_datagrams(b, s->fd);
		} else {
			conn_accept(b, s);
		}
		break;
	case SOURCE_DNS_CLIENT:
		broker_dns_turn(b, s);
		break;
	case SOURCE_CLIENT:
	case SOURCE_SERVER:
		conn_event(b, s, events);
		break;
	case SOURCE_UDP_SERVER:
		broker_udp_turn(b, s->owner);
		break;
	case SOURCE_DIAL:
		hear_dialler(b);
		break;
	case SOURCE_EVENTS:
		hear_supervisor(b);
		break;
	}
}

static uint64_t count_carried(const struct broker *b)
{
	return b->bytes_out - b->lost_out + b->bytes_in - b->lost_in;
}

/* Reports the bytes of all connections in one message, if any have moved since the last report. */
static void tell_bytes(struct broker *b)
{
	struct egress_event e = { .kind = EGRESS_MOVED,
		                  .rule = -1,
		                  .bytes_out = b->bytes_out - b->lost_out,
		                  .bytes_in = b->bytes_in - b->lost_in };
	uint64_t now = clock_ms();

	if (count_carried(b) != b->known && now >= b->tell_ms) {
		broker_report(b, &e);
		b->known = count_carried(b);
		b->tell_ms = now + TELL_MS;
	}
}

/* Returns how long the loop may sleep. */
static int rest_ms(const struct broker *b)
{
	bool untold = b->c->metered && count_carried(b) != b->known;

	return !TAILQ_EMPTY(&b->again) ? 0 : broker_accept_wait_ms(b, untold ? TELL_MS : TICK_MS);
}

/* Carries the bytes that the skill wrote before it ended, as the kernel would do for a direct
 * connection. */
static void carry_rest(struct broker *b)
{
	bool quiet = false;

	while (!b->stopping && clock_ms() < b->finish_ms &&
	       !(conn_finished(b, quiet) && broker_udp_finished(b))) {
		struct epoll_event ready[64];
		int n = epoll_wait(b->epoll, ready, 64, quiet ? 10 : 0);

		for (int i = 0; i < n; i++) {
			handle_event(b, ready[i].data.ptr, ready[i].events);
		}
		quiet = n == 0 && TAILQ_EMPTY(&b->again);
		conn_sweep(b);
		broker_udp_sweep(b);
	}
}

/* Lowers max_connections to fit the file limit: 3 connections for every 8 fds. 8 fds are 2 sockets
 * for each of the 3 connections, and 2 fds for a pipe. */
static void fit_files(struct broker_config *c)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
		uint64_t ours = c->listeners->n + OWN_FDS;
		uint64_t free = files.rlim_cur > ours ? files.rlim_cur - ours : 0;
		if (c->max_connections > free / 8 * 3) {
			c->max_connections = free / 8 * 3;
		}
	}
}

static void watch_all(struct broker *b)
{
	static struct source dial, events;
	struct listeners *l = b->c->listeners;

	dial = (struct source){ .kind = SOURCE_DIAL, .fd = b->c->dial };
	events = (struct source){ .kind = SOURCE_EVENTS, .fd = b->c->events };
	if (broker_watch(b, &dial) != 0 || broker_watch(b, &events) != 0) {
		_exit(1);
	}
	for (size_t i = 0; i < l->n; i++) {
		b->listeners[i] = (struct source){ .kind = SOURCE_LISTENER,
			                           .fd = l->fd[i],
			                           .listener = l->kind[i] };
		if (broker_watch(b, &b->listeners[i]) != 0) {
			_exit(1);
		}
	}
}

_Noreturn void broker_main(struct broker_config *config)
{
	assert(config->table != NULL && config->listeners->n <= MAX_LISTENERS);
	assert(config->dial >= 0 && config->events >= 0);

	struct broker b = { .c = config,
		            .epoll = epoll_create1(EPOLL_CLOEXEC),
		            .listeners = calloc(config->listeners->n, sizeof(*b.listeners)) };
	uint64_t tick = clock_ms() + TICK_MS;
	uint64_t rate = config->max_connections_per_second;

	(void)signal(SIGPIPE, SIG_IGN);
	if (b.epoll < 0 || b.listeners == NULL) {
		_exit(1);
	}
	bucket_init(&b.starts, rate, rate, clock_us());
	bucket_init(&b.questions, DNS_PER_SECOND, 2 * DNS_PER_SECOND, clock_us());
	broker_udp_init(&b);
	TAILQ_INIT(&b.again);
	watch_all(&b);
	fit_files(config);
	confine_or_exit(confine_to_fds, config->ready);
	while (!b.stopping && b.finish_ms == 0) {
		struct epoll_event ready[64];
		int n = epoll_wait(b.epoll, ready, 64, rest_ms(&b));

		for (int i = 0; i < n; i++) {
			handle_event(&b, ready[i].data.ptr, ready[i].events);
		}
		conn_sweep(&b);
		broker_udp_sweep(&b);
		broker_accept_resume(&b);
		if (config->metered) {
			tell_bytes(&b);
		}
		uint64_t now = clock_ms();
		if (now >= tick) {
			tick = now + TICK_MS;
			conn_tick(&b, now);
			broker_udp_tick(&b, now);
			spare_tick(&b);
			broker_tally_tick(&b);
		}
	}
	carry_rest(&b);
	conn_close_all(&b);
	broker_udp_close_all(&b);
	broker_tally_tick(&b);
	_exit(0);
}
