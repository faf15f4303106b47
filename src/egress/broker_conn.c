/* broker_conn.c - handles one connection of the skill: checks its first bytes (broker_first.c),
 * dials, and relays (broker_relay.c).
 *
 * The states of a connection are: FIRST: the skill's bytes are held until they show the name that
 * was declared for the address that the skill dialled. WAIT: the connection waits until the dialler
 * may get another request. DIAL: the dialler was asked. RELAY: bytes are passed on; each further
 * HTTP request is judged as well. Nothing is sent to a server before its name was checked. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "base/own.h"
#include "egress/broker_priv.h"
#include "os/clone.h"

#define DIALS   (MAX_DIALS / 2) /* concurrent requests; the dialler refuses more than MAX_DIALS */
#define WAIT_MS 15000           /* how long a connection may wait in WAIT */

static enum event_protocol find_protocol(const struct conn *c)
{
	return c->first == FIRST_TLS    ? PROTOCOL_TLS
	       : c->first == FIRST_HTTP ? PROTOCOL_HTTP
	                                : PROTOCOL_TCP;
}

static void report_conn(struct broker *b, const struct conn *c, enum egress_kind kind,
                        enum reason reason, const char *kind_of)
{
	struct egress_event e = { .kind = kind,
		                  .rule = c->rule,
		                  .connection = c->state == CONN_RELAY ? c->id : 0,
		                  .port = c->port,
		                  .protocol = find_protocol(c),
		                  .reason = reason,
		                  .asked = c->asked,
		                  .dialled = c->dialled,
		                  .via_proxy = c->via_proxy,
		                  .bytes_out = c->bytes_out,
		                  .bytes_in = c->bytes_in,
		                  .micros = clock_us() - c->since_us };
	char text[ADDRESS_TEXT];

	snprintf(e.name, sizeof(e.name), "%s",
	         c->slot != NULL ? egress_name(c->slot, &c->asked, text) : "");
	snprintf(e.shown, sizeof(e.shown), "%s", c->shown);
	snprintf(e.kind_of, sizeof(e.kind_of), "%s", kind_of);
	broker_report(b, &e);
}

static void conn_enter(struct broker *b, struct conn *c, enum conn_state state)
{
	b->n_in[c->state]--;
	b->n_in[state]++;
	c->state = state;
}

void conn_again(struct broker *b, struct conn *c)
{
	if (!c->again) {
		TAILQ_INSERT_TAIL(&b->again, c, again_link);
		c->again = true;
		c->again_round = b->round;
	}
}

void conn_not_again(struct broker *b, struct conn *c)
{
	if (c->again) {
		TAILQ_REMOVE(&b->again, c, again_link);
		c->again = false;
	}
}

static void conn_free(struct broker *b, struct conn *c)
{
	conn_not_again(b, c);
	flow_done(&c->up);
	flow_done(&c->down);
	own_close(&c->client.fd);
	broker_unwatch(b, &c->server);
	own_close(&c->server.fd);
	conn_drop_head(b, c);
	*(c->prev != NULL ? &c->prev->next : &b->conns) = c->next;
	if (c->next != NULL) {
		c->next->prev = c->prev;
	}
	b->n_conns--;
	b->freed = true;
	/* The memory is freed at the end of the round, because other events of this round may still
	 * point to it. */
	conn_enter(b, c, CONN_OVER);
	c->next = b->over;
	b->over = c;
}

static void reset_on_close(int fd, bool reset)
{
	struct linger now = { .l_onoff = reset, .l_linger = 0 };
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void conn_drop(struct broker *b, struct conn *c)
{
	reset_on_close(c->client.fd, true);
	conn_free(b, c);
}

/* Denies the connection with a reset: the skill sees the reset at once, and cannot mistake it for
 * an empty answer. */
void conn_deny(struct broker *b, struct conn *c, enum reason reason, const char *kind_of)
{
	report_conn(b, c, EGRESS_DENIED, reason, kind_of);
	conn_drop(b, c);
}

void conn_close(struct broker *b, struct conn *c, enum reason reason)
{
	if (c->state == CONN_RELAY) {
		report_conn(b, c, EGRESS_CARRIED, reason, "");
		reset_on_close(c->client.fd, false); /* turn off what listen.c has turned on */
		reset_on_close(c->server.fd, !c->up.done);
		conn_free(b, c);
	} else {
		conn_deny(b, c, reason, "");
	}
}

void conn_broken(struct broker *b, struct conn *c)
{
	if (c->state == CONN_RELAY) {
		report_conn(b, c, EGRESS_CARRIED, REASON_RESET, "");
		conn_drop(b, c);
	} else {
		conn_deny(b, c, REASON_NO_FIRST_BYTES, "");
	}
}

/* Returns whether a connection that the skill has ended still has bytes to carry. A ClientHello is
 * not carried any more, because the client would not read the answer. */
static bool has_more_to_carry(const struct conn *c)
{
	char any;

	if (c->state == CONN_RELAY) {
		return !c->up.done;
	}
	return c->first != FIRST_TLS &&
	       (c->head_len > 0 || recv(c->client.fd, &any, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

bool conn_finished(struct broker *b, bool quiet)
{
	bool left = false;

	for (struct conn *c = b->conns, *next; c != NULL; c = next) {
		next = c->next;
		bool ended = c->up.ending || c->client_eof;
		/* If the client was not watched yet, its first event will show whether it has
		 * ended. */
		bool unsure = !c->client.watched && broker_watch(b, &c->client) == 0;
		if (!unsure && (ended ? !has_more_to_carry(c) : quiet)) {
			conn_close(b, c, REASON_RUN_ENDED);
		} else {
			left = true;
		}
	}
	return quiet && !left;
}

void conn_close_all(struct broker *b)
{
	while (b->conns != NULL) {
		conn_close(b, b->conns, REASON_RUN_ENDED);
	}
}

void conn_tick(struct broker *b, uint64_t now_ms)
{
	for (struct conn *c = b->conns, *next; c != NULL; c = next) {
		next = c->next;
		if (c->state == CONN_FIRST && (c->unsure || c->lingers) &&
		    now_ms - c->moved_ms > SILENT_MS) {
			conn_silent(b, c);
		} else if (c->state == CONN_FIRST && now_ms - c->moved_ms > FIRST_BYTES_MS) {
			conn_close(b, c, REASON_NO_FIRST_BYTES);
		} else if (c->state == CONN_WAIT && now_ms - c->moved_ms > WAIT_MS) {
			conn_close(b, c, REASON_BUSY);
		} else if (c->state == CONN_RELAY && http1_waiting(&c->http) && c->http.expect &&
		           now_ms - c->moved_ms > FIRST_BYTES_MS) {
			/* The client waits for "100 Continue", and the server waits for the
			 * body. */
			conn_deny(b, c, REASON_NO_CONTINUE, "");
		} else if (c->state == CONN_RELAY && now_ms - c->moved_ms > IDLE_MS) {
			conn_close(b, c, REASON_IDLE);
		}
	}
}

/* Begins to relay, because the server is connected. Takes `fd`. */
static void conn_connected(struct broker *b, struct conn *c, int fd)
{
	bool ending = c->up.ending, urgent = c->up.urgent;

	conn_enter(b, c, CONN_RELAY);
	c->server = (struct source){ .kind = SOURCE_SERVER, .fd = fd, .owner = c };
	/* Until the end of the skill's bytes was passed on, closing this socket must reset it, even
	 * if the broker dies. Otherwise the server could mistake an incomplete message for a
	 * complete one. */
	reset_on_close(fd, true);
	flow_init(&c->up, c->client.fd, c->server.fd);
	flow_init(&c->down, c->server.fd, c->client.fd);
	c->up.eof = c->client_eof;
	c->up.ending = ending;
	c->up.urgent = urgent;
	/* `readable` is false if the client is not watched yet and everything that it sent so far
	 * was read. If it sends more, its first event will say so. */
	c->up.readable = c->client.watched || c->head_len == 0 || c->head_len == c->head_room;
	c->down.readable = false; /* until the server's first event */
	c->moved_ms = clock_ms();
	report_conn(b, c, EGRESS_OPENED, REASON_OK, ""); /* must come before the first byte */
	/* Bytes that have already arrived cause no event. */
	conn_relay(b, c);
	if (c->state == CONN_RELAY && (broker_watch(b, &c->server) != 0 ||
	                               (!c->client.watched && broker_watch(b, &c->client) != 0))) {
		conn_close(b, c, REASON_NO_MEMORY);
	}
}

/* Asks the dialler for the connection, or waits until that is possible. */
void conn_dial(struct broker *b, struct conn *c)
{
	struct dial_request q = { .id = { c->id, DIAL_TCP },
		                  .rule = (uint32_t)c->rule,
		                  .port = c->port };
	char text[ADDRESS_TEXT];

	assert(c->slot != NULL && c->rule >= 0); /* nothing may be dialled without a rule */
	snprintf(q.name, sizeof(q.name), "%s", egress_name(c->slot, &c->asked, text));
	if (b->n_in[CONN_DIAL] >= DIALS) {
		conn_enter(b, c, CONN_WAIT);
		c->moved_ms = clock_ms();
		return;
	}
	conn_enter(b, c, CONN_DIAL);
	auto_fd spare = spare_fire(b, c);
	if (spare >= 0) {
		conn_connected(b, c, steal_fd(&spare));
	} else if (msg_fds_send(b->c->dial, &q, sizeof(q), NULL) != 0) {
		conn_deny(b, c, REASON_BUSY, "");
	}
}

/* Dials waiting connections, the oldest first. The list begins with the newest. */
static void dial_waiting(struct broker *b)
{
	while (b->n_in[CONN_WAIT] > 0 && b->n_in[CONN_DIAL] < DIALS) {
		struct conn *oldest = NULL;
		for (struct conn *c = b->conns; c != NULL; c = c->next) {
			oldest = c->state == CONN_WAIT ? c : oldest;
		}
		if (oldest == NULL) {
			return;
		}
		conn_dial(b, oldest);
	}
}

void conn_event(struct broker *b, struct source *s, uint32_t events)
{
	struct conn *c = s->owner;
	struct flow *f = s->kind == SOURCE_CLIENT ? &c->up : &c->down;

	f->readable |= (events & ~(uint32_t)EPOLLOUT) != 0;
	f->ending |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	f->urgent |= (events & EPOLLPRI) != 0;
	if (c->state == CONN_FIRST) {
		conn_first(b, c);
	} else if (c->state == CONN_RELAY && f->ending && b->n_conns < b->c->max_connections) {
		/* One side has ended this connection. Relay this end one round later: no process
		 * waits for it, ending a connection takes more work than opening one, and the skill
		 * may be waiting for its next connection. But if almost all connections are in use,
		 * end this one now, to free it. */
		conn_again(b, c);
	} else if (c->state == CONN_RELAY) {
		conn_relay(b, c);
	}
}

void conn_sweep(struct broker *b)
{
	struct conn *c;

	/* Relay only connections that an earlier round put on the list. Those of this round
	 * continue in the next round. */
	while ((c = TAILQ_FIRST(&b->again)) != NULL && c->again_round != b->round) {
		conn_relay(b, c);
	}
	b->round++;
	dial_waiting(b);
	while (b->over != NULL) {
		c = b->over;
		b->over = c->next;
		free(c);
	}
}

void conn_dialled(struct broker *b, const struct dial_reply *r, int fd)
{
	auto_fd server = fd;
	struct conn *c = b->conns;

	while (c != NULL && c->id != r->id.serial) {
		c = c->next;
	}
	if (c == NULL || c->state != CONN_DIAL) {
		return; /* the connection has ended in the meantime */
	}
	c->dialled = r->address;
	c->via_proxy = r->via_proxy;
	if (r->result != DIAL_OK || server < 0) {
		conn_deny(b, c, dial_result_reason(r->result), r->range);
		return;
	}
	conn_connected(b, c, steal_fd(&server));
}
