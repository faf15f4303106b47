/* broker_accept.c - accepts connections of the skill, and limits their rate.
 *
 * If the plan's rate is exceeded or no fd is free, a listener is paused for a while. Then
 * connections wait in the kernel's queue, as at a busy server, and the loop does not spin. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/own.h"
#include "egress/broker_priv.h"

#define STARVED_US 1000000 /* how long listeners pause if no fd is free */

static void rearm_listener(struct broker *b, struct source *s, bool paused)
{
	struct epoll_event e = { .data.ptr = s, .events = paused ? 0 : EPOLLIN };

	s->paused = paused;
	(void)epoll_ctl(b->epoll, EPOLL_CTL_MOD, s->fd, &e);
}

static void pause_until(struct broker *b, struct source *s, uint64_t due_us)
{
	rearm_listener(b, s, true);
	if (b->resume_us == 0 || due_us < b->resume_us) {
		b->resume_us = due_us;
	}
}

static void pause_for_rate(struct broker *b, struct source *s)
{
	/* Sleep until several connections may start, so that a flood does not wake the broker for
	 * each one. */
	uint64_t some = b->starts.per_second / 20;

	broker_tally_add(b, TALLY_TCP);
	pause_until(b, s, bucket_due_us(&b->starts, some > 0 ? some : 1));
}

int broker_accept_next(struct broker *b, struct source *s)
{
	bool counted = s->listener == LISTEN_TCP;

	if (counted && !bucket_take(&b->starts, clock_us())) {
		pause_for_rate(b, s);
		return -1;
	}
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		return fd;
	}
	if (counted) {
		b->starts.left++; /* there was no connection, so give the token back */
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		broker_tally_add(b, TALLY_FILES);
		b->starved = true;
		b->freed = false;
		pause_until(b, s, clock_us() + STARVED_US);
	}
	return -1;
}

void broker_accept_resume(struct broker *b)
{
	bool due = b->resume_us != 0 && (clock_us() >= b->resume_us || (b->starved && b->freed));

	if (!due) {
		return;
	}
	b->resume_us = 0;
	b->starved = false;
	for (size_t i = 0; i < b->c->listeners->n; i++) {
		if (b->listeners[i].paused) {
			rearm_listener(b, &b->listeners[i], false);
		}
	}
}

int broker_accept_wait_ms(const struct broker *b, int most)
{
	uint64_t now = clock_us();

	if (b->resume_us == 0) {
		return most;
	}
	uint64_t ms = b->resume_us > now ? (b->resume_us - now + 999) / 1000 : 0;
	return ms < (uint64_t)most ? (int)ms : most;
}

/* ---- the connection ------------------------------------------------------- */

static enum reason find_refusal(const struct broker *b, const struct conn *c)
{
	return c->slot == NULL || c->rule < 0       ? REASON_NOT_DECLARED
	       : b->n_conns > b->c->max_connections ? REASON_TOO_MANY_CONNECTIONS
	       : b->bytes_out >= b->c->max_bytes_out || b->bytes_in >= b->c->max_bytes_in
	               ? REASON_BYTE_LIMIT
	               : REASON_NONE;
}

static bool is_any(const struct address *a)
{
	static const struct address any4 = { { [10] = 0xff, [11] = 0xff } }, any6;

	return memcmp(a, &any4, sizeof(*a)) == 0 || memcmp(a, &any6, sizeof(*a)) == 0;
}

/* Finds the address and port to which the skill connected. If the listener has a single address, so
 * do all its connections, and getsockname() is called only once, for the listener. If it serves all
 * addresses, getsockname() is called for each connection. */
static bool find_meant_address(struct source *listener, struct conn *c)
{
	if (!listener->looked_at) {
		listener->looked_at = true;
		listener->fixed =
		        conn_address_dialled(listener->fd, &listener->at, &listener->port) &&
		        !is_any(&listener->at);
	}
	if (!listener->fixed) {
		return conn_address_dialled(c->client.fd, &c->asked, &c->port);
	}
	c->asked = listener->at;
	c->port = listener->port;
	return true;
}

static void conn_link(struct broker *b, struct conn *c)
{
	c->next = b->conns;
	if (b->conns != NULL) {
		b->conns->prev = c;
	}
	b->conns = c;
	b->n_conns++;
	b->n_in[c->state]++;
}

static void conn_begin(struct broker *b, struct conn *c)
{
	c->first = egress_first_bytes(&b->c->table->plan->egress[c->rule], c->port);
	c->unsure = b->c->table->plan->learning != LEARNING_NOT;
	http1_init(&c->http);
	if (c->first == FIRST_RAW && !c->unsure) {
		conn_dial(b, c);
	} else {
		conn_first(b, c);
	}
	if (c->state == CONN_FIRST && broker_watch(b, &c->client) != 0) {
		conn_deny(b, c, REASON_NO_MEMORY, "");
	}
}

/* Accepts only one connection in each turn. A loop would end with an accept() that finds no
 * connection. Such a call costs half as much as one that finds a connection. */
void conn_accept(struct broker *b, struct source *listener)
{
	auto_fd client = broker_accept_next(b, listener);
	struct conn *c = client < 0 ? NULL : calloc(1, sizeof(*c));

	if (c == NULL) {
		return;
	}
	c->client = (struct source){ .kind = SOURCE_CLIENT, .fd = steal_fd(&client), .owner = c };
	c->server.fd = -1;
	flow_init(&c->up, -1, -1);
	flow_init(&c->down, -1, -1);
	c->id = ++b->next_id;
	c->since_us = clock_us();
	c->moved_ms = clock_ms();
	conn_link(b, c);
	c->slot =
	        find_meant_address(listener, c) ? egress_by_address(b->c->table, &c->asked) : NULL;
	c->rule = c->slot != NULL ? egress_rule_for(b->c->table, c->slot, c->port, false) : -1;
	if (c->slot == NULL && guard_is_loopback(&c->asked)) {
		/* This is the listener of a wide range, and the skill meant its own loopback, where
		 * nothing listens. */
		conn_drop(b, c);
		return;
	}
	enum reason refused = find_refusal(b, c);
	if (refused != REASON_NONE) {
		conn_deny(b, c, refused, "");
	} else {
		conn_begin(b, c);
	}
}

/* ---- facts that are counted ----------------------------------------------- */

static void report_tally(struct broker *b, enum broker_tally what)
{
	static const struct {
		enum egress_kind kind;
		enum event_protocol protocol;
		enum reason reason;
	} AS[TALLY_COUNT] = {
		[TALLY_TCP] = { EGRESS_LIMITED, PROTOCOL_TCP, REASON_RATE_LIMIT },
		[TALLY_UDP] = { EGRESS_LIMITED, PROTOCOL_UDP, REASON_RATE_LIMIT },
		[TALLY_DNS] = { EGRESS_LIMITED, PROTOCOL_DNS, REASON_RATE_LIMIT },
		[TALLY_FILES] = { EGRESS_LIMITED, PROTOCOL_TCP, REASON_NO_FILES },
		[TALLY_MALFORMED] = { EGRESS_MALFORMED, PROTOCOL_DNS, REASON_MALFORMED },
		[TALLY_UNSUPPORTED] = { EGRESS_MALFORMED, PROTOCOL_DNS, REASON_NOT_SUPPORTED },
	};
	struct egress_event e = { .kind = AS[what].kind,
		                  .rule = -1,
		                  .count = b->tally[what],
		                  .protocol = AS[what].protocol,
		                  .reason = AS[what].reason };

	e.port = e.kind == EGRESS_MALFORMED ? 53 : 0;
	b->tally[what] = 0;
	b->told[what] = true;
	broker_report(b, &e);
}

/* Counts a fact. Reports the first occurrence at once, and further ones once a second. */
void broker_tally_add(struct broker *b, enum broker_tally what)
{
	b->tally[what]++;
	if (!b->told[what]) {
		report_tally(b, what);
	}
}

void broker_tally_tick(struct broker *b)
{
	for (int i = 0; i < TALLY_COUNT; i++) {
		if (b->tally[i] > 0) {
			report_tally(b, (enum broker_tally)i);
		}
	}
}
