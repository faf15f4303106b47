/* broker_relay.c - relays a connection whose server is connected: in both directions, within the
 * run's byte limits, and request by request for HTTP. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/broker_priv.h"

#define TURN_BYTES (1U << 20) /* the most that one connection moves in one turn */

/* Returns how many of `n` bytes the limit still allows. */
static size_t fit_limit(uint64_t total, uint64_t limit, size_t n)
{
	uint64_t room = total < limit ? limit - total : 0;

	return room < n ? (size_t)room : n;
}

/* Ends a connection whose server takes no more bytes. The bytes that the server sent before, such
 * as the reason why it refuses more, are still passed to the skill, as on a direct connection. */
static void conn_hung_up(struct broker *b, struct conn *c)
{
	uint64_t moved = 0;

	c->down.readable = c->down.last = true; /* `last`: do not pass on the server's end of
	                                           stream; conn_broken() resets instead */
	(void)flow_turn(&c->down, fit_limit(b->bytes_in, b->c->max_bytes_in, TURN_BYTES), &moved);
	c->bytes_in += moved;
	b->bytes_in += moved;
	conn_broken(b, c);
}

/* Sends the first `n` bytes of the head, and keeps those that cannot be sent now. Returns false if
 * the connection was ended. */
static bool send_head(struct broker *b, struct conn *c, size_t n)
{
	while (n > 0) {
		size_t may = fit_limit(b->bytes_out, b->c->max_bytes_out, n);
		if (may == 0) {
			conn_deny(b, c, REASON_BYTE_LIMIT, "");
			return false;
		}
		ssize_t w = send(c->server.fd, c->head, may, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (w < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				conn_hung_up(b, c);
				return false;
			}
			broker_want_room(b, &c->server);
			return true;
		}
		memmove(c->head, c->head + w, c->head_len - (size_t)w);
		c->head_len -= (size_t)w;
		n -= (size_t)w;
		c->bytes_out += (uint64_t)w;
		b->bytes_out += (uint64_t)w;
		c->passed -= (size_t)w < c->passed ? (size_t)w : c->passed;
		c->moved_ms = clock_ms();
	}
	return true;
}

/* Handles the end of the skill's bytes. An incomplete request can never be judged, so it is not
 * sent. The server's bytes are still passed to the skill. */
static void end_http_up(struct broker *b, struct conn *c)
{
	conn_drop_head(b, c);
	(void)shutdown(c->server.fd, SHUT_WR);
	c->up.eof = c->up.done = true;
}

/* Relays the skill's bytes of an HTTP connection, and judges each request. */
static void relay_http_up(struct broker *b, struct conn *c)
{
	bool stuck = c->up.done;

	for (int i = 0; !stuck && i < 256 && c->state == CONN_RELAY; i++) {
		bool more = conn_fill_head(b, c);
		if (c->state != CONN_RELAY) {
			return;
		}
		if (c->passed > 0) {
			if (!send_head(b, c, c->passed) || c->passed > 0) {
				return;
			}
			continue;
		}
		size_t pass = 0;
		enum http1_verdict v = http1_feed(&c->http, c->head, c->head_len, &pass);
		if (v == HTTP1_DENY || (v == HTTP1_REQUEST && conn_http_wrong(c) != REASON_NONE)) {
			conn_deny(b, c,
			          v == HTTP1_DENY ? broker_http_reason(c->http.why)
			                          : conn_http_wrong(c),
			          "");
			return;
		}
		if (v == HTTP1_REQUEST) {
			http1_allow(&c->http);
			c->status.expects = c->http.expect;
			continue;
		}
		c->passed = pass;
		stuck = pass == 0 && !more;
		if (stuck) {
			break;
		}
	}
	if (c->state != CONN_RELAY) {
		return;
	}
	if (!stuck) {
		conn_again(b, c);
	} else if (!c->up.done &&
	           (http1_refused(&c->http) || (c->client_eof && !http1_waiting(&c->http)))) {
		end_http_up(b, c);
	} else if (c->head_len == 0) {
		conn_drop_head(
		        b, c); /* other connections can use the buffer while this one is silent */
	} else if (conn_is_short(c) && !http1_waiting(&c->http)) {
		/* There is no memory to hold the request until it can be judged. */
		conn_deny(b, c, REASON_NO_MEMORY, "");
	}
}

/* Relays the server's bytes, and parses them while the skill waits for an upgrade or for "100
 * Continue". */
static void relay_http_down(struct broker *b, struct conn *c)
{
	char buf[4096];

	while (c->state == CONN_RELAY && http1_waiting(&c->http) && !c->status.decided) {
		ssize_t n = recv(c->server.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_PEEK);
		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				conn_broken(b, c);
			}
			return;
		}
		if (n == 0) { /* the server ended the connection without an answer, so there is no
			         upgrade */
			c->status.decided = true;
			http1_not_switched(&c->http);
			return;
		}
		size_t may = fit_limit(b->bytes_in, b->c->max_bytes_in, (size_t)n);
		if (may == 0) {
			conn_deny(b, c, REASON_BYTE_LIMIT, "");
			return;
		}
		/* Remove only those bytes from the server's socket that the client has taken. */
		ssize_t w = send(c->client.fd, buf, may, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (w <= 0) {
			broker_want_room(b, &c->client);
			return;
		}
		bool switched = http1_is_switch(&c->status, buf, (size_t)w);
		(void)!recv(c->server.fd, buf, (size_t)w, MSG_DONTWAIT);
		c->bytes_in += (uint64_t)w;
		b->bytes_in += (uint64_t)w;
		if (c->status.decided) {
			if (c->status.go_on) {
				http1_continued(&c->http);
			} else if (switched) {
				http1_switched(&c->http);
			} else {
				http1_not_switched(&c->http);
			}
		}
	}
}

/* Must be called only when the byte limit is used up. Returns true if there is nothing more to
 * carry, so that the limit denies nothing. Also notes whether the source has ended. */
static bool is_at_end(struct flow *f)
{
	char more;
	ssize_t n = recv(f->from, &more, 1, MSG_PEEK | MSG_DONTWAIT);

	f->eof |= n == 0;
	return n <= 0 && f->piped == 0;
}

static bool relay_flow(struct broker *b, struct conn *c, struct flow *f, uint64_t *count,
                       uint64_t *total, uint64_t limit)
{
	uint64_t moved = 0;
	size_t max = fit_limit(*total, limit, TURN_BYTES);

	if (max == 0 && !is_at_end(f)) {
		conn_deny(b, c, REASON_BYTE_LIMIT, "");
		return false;
	}
	f->last = f == &c->up ? c->down.done : c->up.done;
	enum flow_result r = flow_turn(f, max, &moved);

	*count += moved;
	*total += moved;
	if (r == FLOW_BROKEN) {
		conn_hung_up(b, c);
		return false;
	}
	if (r == FLOW_MOVED) {
		c->moved_ms = clock_ms();
	}
	if (f->blocked) {
		broker_want_room(b, f == &c->up ? &c->server : &c->client);
	} else if (moved > 0 && moved >= max) {
		conn_again(b, c);
	}
	return true;
}

void conn_relay(struct broker *b, struct conn *c)
{
	assert(c->state == CONN_RELAY);
	conn_not_again(b, c);
	if (c->first == FIRST_HTTP) {
		relay_http_up(b, c);
		if (c->state == CONN_RELAY && http1_waiting(&c->http)) {
			relay_http_down(b, c);
			if (c->state == CONN_RELAY && !http1_waiting(&c->http)) {
				relay_http_up(
				        b, c); /* sends the bytes that were held back until now */
			}
		}
	} else if (c->head_len > 0) {
		if (!send_head(b, c, c->head_len)) {
			return;
		}
		if (c->head_len == 0) {
			conn_drop_head(b, c); /* the next connection can use the buffer */
		}
	}
	if (c->state != CONN_RELAY) {
		return;
	}
	bool raw_up = c->first != FIRST_HTTP && c->head_len == 0;
	if ((raw_up &&
	     !relay_flow(b, c, &c->up, &c->bytes_out, &b->bytes_out, b->c->max_bytes_out)) ||
	    (!(c->first == FIRST_HTTP && http1_waiting(&c->http) && !c->status.decided) &&
	     !relay_flow(b, c, &c->down, &c->bytes_in, &b->bytes_in, b->c->max_bytes_in))) {
		return;
	}
	if (c->up.done && c->down.done) {
		conn_close(b, c, REASON_OK);
	} else if (!c->spared && c->bytes_in > 0) {
		c->spared = true; /* Ask only now: before the server's first bytes the skill waits,
		                     and asking would delay it. */
		spare_ask(b, c);
	}
}
