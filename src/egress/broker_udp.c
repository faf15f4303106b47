/* broker_udp.c - carries the skill's datagrams, in flows.
 *
 * A flow consists of the datagrams that one socket of the skill (its address and port) sends to one
 * declared name and port, and of the answers. Its states are: DIAL: the dialler was asked, and the
 * first datagrams wait. RELAY: datagrams are moved in both directions, through a gate (gate.h). UDP
 * has no end of a connection, so a flow ends when it has been idle for IDLE_UDP_MS, or for SPARE_MS
 * if its place is needed.
 *
 * UDP has no reset either. A denied flow gets no answer and is MUTED: its further datagrams are
 * dropped silently, so that each denial is only one event. After MUTED_MS the next datagram begins
 * a new flow, which is judged again. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fnv.h"
#include "base/limits.h"
#include "base/own.h"
#include "egress/broker_priv.h"
#include "egress/gate.h"
#include "os/clone.h"

#define IDLE_UDP_MS    60000
#define SPARE_MS       5000 /* a flow that was idle for so long may be ended for a new one */
#define MUTED_MS       10000
#define MAX_MUTED      1024
#define TURN_DATAGRAMS 64 /* most datagrams of one listener or server in one turn */
#define QUEUE_LEN      8  /* datagrams of a flow that wait for the dialler */
#define QUEUE_BYTES    65536

enum udp_state { UDP_DIAL, UDP_RELAY, UDP_MUTED, UDP_OVER };

struct udp_client {
	int listener; /* borrowed */
	socklen_t len;
	union address_socket at;
};

struct udp_flow {
	TAILQ_ENTRY(udp_flow) list;
	struct udp_flow *next; /* next in its bucket */
	struct udp_client client;
	struct source server;
	enum udp_state state;
	uint64_t id;
	uint64_t since_us;
	uint64_t moved_ms; /* clock_ms() of the last datagram; in UDP_MUTED, of the denial */
	struct slot *slot;
	int rule;
	uint16_t port;
	struct address asked;
	struct address dialled;
	uint8_t via_proxy;
	char *queue; /* messages for the gate, one after another */
	size_t queue_bytes;
	size_t queue_len;
	size_t queued[QUEUE_LEN]; /* length of each message */
	bool unreachable;
	uint64_t bytes_out, bytes_in;
};

/* The buffer for the message that is being moved from one socket to the other. */
static char message[GATE_MESSAGE];

void broker_udp_init(struct broker *b)
{
	TAILQ_INIT(&b->udp.live);
	TAILQ_INIT(&b->udp.muted);
	TAILQ_INIT(&b->udp.over);
}

static void report_flow(struct broker *b, const struct udp_flow *f, enum egress_kind kind,
                        enum reason reason, const char *kind_of)
{
	struct egress_event e = { .kind = kind,
		                  .rule = f->rule,
		                  .connection = f->state == UDP_RELAY ? f->id : 0,
		                  .port = f->port,
		                  .protocol = PROTOCOL_UDP,
		                  .reason = reason,
		                  .asked = f->asked,
		                  .dialled = f->dialled,
		                  .via_proxy = f->via_proxy,
		                  .bytes_out = f->bytes_out,
		                  .bytes_in = f->bytes_in,
		                  .micros = clock_us() - f->since_us };
	char text[ADDRESS_TEXT];

	snprintf(e.name, sizeof(e.name), "%s",
	         f->slot != NULL ? egress_name(f->slot, &f->asked, text) : "");
	snprintf(e.kind_of, sizeof(e.kind_of), "%s", kind_of);
	broker_report(b, &e);
}

/* ---- the table of flows --------------------------------------------------- */

static struct udp_flow **find_bucket(struct broker *b, const struct udp_client *c)
{
	return &b->udp.bucket[fnv_hash((uint64_t)c->listener, &c->at, c->len) % UDP_BUCKETS];
}

static struct udp_flow *flow_find(struct broker *b, const struct udp_client *c)
{
	struct udp_flow *f = *find_bucket(b, c);

	while (f != NULL && (f->client.listener != c->listener || f->client.len != c->len ||
	                     memcmp(&f->client.at, &c->at, c->len) != 0)) {
		f = f->next;
	}
	return f;
}

static void flow_forget(struct broker *b, struct udp_flow *f)
{
	struct udp_flow **p = find_bucket(b, &f->client);

	while (*p != f) {
		p = &(*p)->next;
	}
	*p = f->next;
	f->state = UDP_OVER;
	TAILQ_INSERT_TAIL(&b->udp.over, f,
	                  list); /* not freed yet, because events of this round may point to it */
}

/* Removes a flow from the list of live ones and frees its resources, but not the flow itself. */
static void flow_stop(struct broker *b, struct udp_flow *f)
{
	broker_unwatch(b, &f->server);
	own_close(&f->server.fd);
	b->freed = true;
	free(f->queue);
	f->queue = NULL;
	b->held -= f->queue_bytes;
	f->queue_bytes = 0;
	TAILQ_REMOVE(&b->udp.live, f, list);
	b->udp.n_live--;
	b->n_conns--;
}

static void unmute_oldest(struct broker *b)
{
	struct udp_flow *f = TAILQ_FIRST(&b->udp.muted);

	TAILQ_REMOVE(&b->udp.muted, f, list);
	b->udp.n_muted--;
	flow_forget(b, f);
}

/* Mutes a flow, which must not be in any list. */
static void flow_mute(struct broker *b, struct udp_flow *f)
{
	f->state = UDP_MUTED;
	f->moved_ms = clock_ms();
	TAILQ_INSERT_TAIL(&b->udp.muted, f, list);
	if (++b->udp.n_muted > MAX_MUTED) {
		unmute_oldest(b);
	}
}

static void flow_deny(struct broker *b, struct udp_flow *f, enum reason reason, const char *kind_of)
{
	report_flow(b, f, EGRESS_DENIED, reason, kind_of);
	flow_stop(b, f);
	flow_mute(b, f);
}

static void flow_end(struct broker *b, struct udp_flow *f, enum reason reason)
{
	bool lost = f->unreachable && f->bytes_in == 0;

	report_flow(b, f, f->state == UDP_RELAY ? EGRESS_CARRIED : EGRESS_DENIED,
	            lost ? REASON_UNREACHABLE : reason, "");
	flow_stop(b, f);
	flow_forget(b, f);
}

/* Counts a datagram against the run's byte limit. A datagram that exceeds the limit is not carried,
 * uses up the rest of the limit and ends the flow, as for TCP. */
static bool count_datagram(struct broker *b, struct udp_flow *f, size_t len, uint64_t *total,
                           uint64_t *lost, uint64_t max)
{
	*total += len;
	if (*total <= max) {
		return true;
	}
	*lost += len;
	flow_deny(b, f, REASON_BYTE_LIMIT, "");
	return false;
}

static void flow_moved(struct broker *b, struct udp_flow *f)
{
	f->moved_ms = clock_ms();
	TAILQ_REMOVE(&b->udp.live, f, list);
	TAILQ_INSERT_TAIL(&b->udp.live, f, list);
}

/* Makes room for one more flow. If necessary, ends a flow that was idle for at least SPARE_MS.
 * Returns false if there is no room. */
static bool make_room(struct broker *b)
{
	struct udp_flow *oldest = TAILQ_FIRST(&b->udp.live);

	if (b->n_conns < b->c->max_connections && b->udp.n_live < MAX_UDP_FLOWS) {
		return true;
	}
	if (oldest == NULL || oldest->state != UDP_RELAY ||
	    clock_ms() - oldest->moved_ms < SPARE_MS) {
		return false;
	}
	flow_end(b, oldest, REASON_IDLE);
	return b->n_conns < b->c->max_connections;
}

/* ---- from the skill ------------------------------------------------------- */

static enum reason find_refusal(struct broker *b, const struct udp_flow *f)
{
	bool used_up = b->bytes_out > b->c->max_bytes_out || b->bytes_in > b->c->max_bytes_in;

	return f->slot == NULL || f->rule < 0 ? REASON_NOT_DECLARED
	       : used_up                      ? REASON_BYTE_LIMIT
	       : !make_room(b)                ? REASON_TOO_MANY_CONNECTIONS
	                                      : REASON_NONE;
}

static void flow_dial(struct broker *b, struct udp_flow *f)
{
	struct dial_request q = { .id = { f->id, DIAL_UDP },
		                  .rule = (uint32_t)f->rule,
		                  .port = f->port };
	char text[ADDRESS_TEXT];

	assert(f->slot != NULL && f->rule >= 0); /* nothing is dialled without a rule */
	snprintf(q.name, sizeof(q.name), "%s", egress_name(f->slot, &f->asked, text));
	if (msg_fds_send(b->c->dial, &q, sizeof(q), NULL) != 0) {
		flow_deny(b, f, REASON_BUSY, "");
	}
}

/* Begins a flow when the first datagram of a client arrives. Returns NULL if there are too many new
 * flows or no memory; then the datagram is lost. */
static struct udp_flow *flow_start(struct broker *b, const struct udp_client *client)
{
	if (!bucket_take(&b->starts, clock_us())) {
		broker_tally_add(b, TALLY_UDP);
		return NULL;
	}
	struct udp_flow *f = calloc(1, sizeof(*f));
	if (f == NULL) {
		return NULL;
	}
	f->client = *client;
	f->server.fd = -1;
	f->id = ++b->next_id;
	f->since_us = clock_us();
	f->moved_ms = clock_ms();
	f->slot = conn_address_dialled(client->listener, &f->asked, &f->port)
	                  ? egress_by_address(b->c->table, &f->asked)
	                  : NULL;
	f->rule = f->slot != NULL ? egress_rule_for(b->c->table, f->slot, f->port, true) : -1;
	enum reason refused = find_refusal(b, f);
	struct udp_flow **bucket = find_bucket(b, client);
	f->next = *bucket;
	*bucket = f;
	if (refused != REASON_NONE) {
		report_flow(b, f, EGRESS_DENIED, refused, "");
		flow_mute(b, f);
		return f;
	}
	TAILQ_INSERT_TAIL(&b->udp.live, f, list);
	b->udp.n_live++;
	b->n_conns++;
	flow_dial(b, f);
	return f;
}

/* Stores `message` (`len` bytes) until the dialler has answered. A datagram that exceeds a limit is
 * lost. */
static void flow_keep(struct broker *b, struct udp_flow *f, size_t len)
{
	if (f->queue_len == QUEUE_LEN || f->queue_bytes + len > QUEUE_BYTES + QUEUE_LEN ||
	    b->held + len > MAX_HELD_BYTES) {
		return;
	}
	char *grown = realloc(f->queue, f->queue_bytes + len);
	if (grown == NULL) {
		return;
	}
	memcpy(grown + f->queue_bytes, message, len);
	f->queue = grown;
	f->queue_bytes += len;
	b->held += len;
	f->queued[f->queue_len++] = len;
}

/* Sends a message of `len` bytes, whose first byte is the gate word. Returns false if the flow was
 * ended. */
static bool flow_send(struct broker *b, struct udp_flow *f, const char *data, size_t len)
{
	if (!count_datagram(b, f, len - 1, &b->bytes_out, &b->lost_out, b->c->max_bytes_out)) {
		return false;
	}
	if (send(f->server.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		b->lost_out += len - 1;
		if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == EMSGSIZE) {
			return true; /* The datagram is lost, as on a busy network. */
		}
		flow_end(b, f, REASON_CLOSED);
		return false;
	}
	f->bytes_out += len - 1;
	flow_moved(b, f);
	return true;
}

void broker_udp_datagrams(struct broker *b, int listener)
{
	for (int i = 0; i < TURN_DATAGRAMS; i++) {
		struct udp_client client = { .listener = listener, .len = sizeof(client.at) };
		ssize_t n = recvfrom(listener, message + 1, sizeof(message) - 1, MSG_DONTWAIT,
		                     &client.at.any, &client.len);
		if (n < 0 || client.len > sizeof(client.at)) {
			return;
		}
		size_t len = (size_t)n + 1;
		struct udp_flow *f = flow_find(b, &client);
		if (f == NULL) {
			f = flow_start(b, &client);
		}
		message[0] = GATE_DATAGRAM;
		if (f != NULL && f->state == UDP_DIAL) {
			flow_keep(b, f, len);
		} else if (f != NULL && f->state == UDP_RELAY) {
			(void)flow_send(b, f, message, len);
		}
	}
}

/* ---- from the dialler and the server -------------------------------------- */

static void flow_release(struct broker *b, struct udp_flow *f)
{
	auto_free char *queue = steal_ptr(&f->queue);
	size_t at = 0;

	b->held -= f->queue_bytes;
	f->queue_bytes = 0;
	for (size_t i = 0; i < f->queue_len; i++) {
		if (!flow_send(b, f, queue + at, f->queued[i])) {
			return;
		}
		at += f->queued[i];
	}
}

void broker_udp_dialled(struct broker *b, const struct dial_reply *r, int fd)
{
	auto_fd server = fd;
	struct udp_flow *f = TAILQ_FIRST(&b->udp.live);

	while (f != NULL && f->id != r->id.serial) {
		f = TAILQ_NEXT(f, list);
	}
	if (f == NULL || f->state != UDP_DIAL) {
		return; /* the flow has ended in the meantime */
	}
	f->dialled = r->address;
	f->via_proxy = r->via_proxy;
	if (r->result != DIAL_OK || server < 0) {
		flow_deny(b, f, dial_result_reason(r->result), r->range);
		return;
	}
	f->server =
	        (struct source){ .kind = SOURCE_UDP_SERVER, .fd = steal_fd(&server), .owner = f };
	if (broker_watch(b, &f->server) != 0) {
		flow_deny(b, f, REASON_NO_MEMORY, "");
		return;
	}
	f->state = UDP_RELAY;
	report_flow(b, f, EGRESS_OPENED, REASON_OK, "");
	flow_moved(b, f);
	flow_release(b, f);
}

void broker_udp_turn(struct broker *b, struct udp_flow *f)
{
	for (int i = 0; i < TURN_DATAGRAMS && f->state == UDP_RELAY; i++) {
		ssize_t n = recv(f->server.fd, message, sizeof(message), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		if (n <= 0) {
			flow_end(b, f, REASON_CLOSED);
			return;
		}
		if (message[0] == GATE_TOO_LARGE) {
			flow_end(b, f, REASON_TOO_LARGE);
			return;
		}
		if (message[0] != GATE_DATAGRAM) {
			f->unreachable = true;
			continue;
		}
		size_t len = (size_t)n - 1;
		if (!count_datagram(b, f, len, &b->bytes_in, &b->lost_in, b->c->max_bytes_in)) {
			return;
		}
		f->bytes_in += len;
		flow_moved(b, f);
		(void)!sendto(f->client.listener, message + 1, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		              &f->client.at.any, f->client.len);
	}
}

/* ---- time ----------------------------------------------------------------- */

void broker_udp_tick(struct broker *b, uint64_t now_ms)
{
	struct udp_flow *f;

	while ((f = TAILQ_FIRST(&b->udp.live)) != NULL && now_ms - f->moved_ms > IDLE_UDP_MS) {
		flow_end(b, f, REASON_IDLE);
	}
	while ((f = TAILQ_FIRST(&b->udp.muted)) != NULL && now_ms - f->moved_ms > MUTED_MS) {
		unmute_oldest(b);
	}
}

bool broker_udp_finished(const struct broker *b)
{
	struct udp_flow *f = TAILQ_FIRST(&b->udp.live);

	while (f != NULL && f->state != UDP_DIAL) {
		f = TAILQ_NEXT(f, list);
	}
	return f == NULL;
}

void broker_udp_close_all(struct broker *b)
{
	while (!TAILQ_EMPTY(&b->udp.live)) {
		flow_end(b, TAILQ_FIRST(&b->udp.live), REASON_RUN_ENDED);
	}
}

void broker_udp_sweep(struct broker *b)
{
	struct udp_flow *f;

	while ((f = TAILQ_FIRST(&b->udp.over)) != NULL) {
		TAILQ_REMOVE(&b->udp.over, f, list);
		free(f);
	}
}
