/* broker_dns.c - the only resolver that the skill has. It asks no other server: a name that is not
 * granted does not exist, and the query for it never leaves the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/broker_priv.h"
#include "wire/dns.h"

#define TTL             60 /* seconds; an answer is valid for the whole run */
#define MAX_DNS_CLIENTS 32
#define RCODE_FORMERR   1
#define RCODE_NXDOMAIN  3
#define RCODE_REFUSED   5

struct dns_client {
	struct source source;
	size_t len;
	uint8_t buf[2 + DNS_MAX_MESSAGE];
};

static struct address address_given(const struct dns_question *q, const struct slot *slot)
{
	struct address a = { 0 };

	if (q->type == DNS_AAAA) {
		memcpy(a.b, slot->v6, sizeof(slot->v6));
	} else {
		a = address_of_v4(slot->v4);
	}
	return a;
}

static void report_question(struct broker *b, const struct dns_question *q, const struct slot *slot,
                            enum reason reason)
{
	struct egress_event e = { .kind = slot != NULL ? EGRESS_RESOLVED : EGRESS_UNKNOWN,
		                  .rule = slot != NULL ? (int)slot->rule : -1,
		                  .port = 53,
		                  .qtype = q->qtype,
		                  .protocol = PROTOCOL_DNS,
		                  .reason = reason };

	if (slot != NULL && b->c->table->plan->learning != LEARNING_NOT) {
		/* Record the address that stands for the name. If the skill then connects to this
		 * address on another port, the record shows which name the skill meant. */
		e.asked = address_given(q, slot);
	}
	snprintf(e.name, sizeof(e.name), "%s", q->name);
	broker_report(b, &e);
}

/* Returns whether the name contains the canary of a learning run. A query for this name could carry
 * the canary out of the machine. */
static bool holds_canary(const struct broker *b, const struct dns_question *q)
{
	const char *canary = b->c->table->plan->canary;

	return canary[0] != '\0' && strstr(q->name, canary) != NULL;
}

/* Returns the length of the answer, or 0 if there is none. A message longer than DNS_MAX_MESSAGE is
 * not parsed. */
static size_t answer_question(struct broker *b, const uint8_t *msg, size_t len, bool udp,
                              uint8_t *out, size_t room)
{
	struct dns_question q;
	bool full = false;
	enum dns_verdict v = len <= DNS_MAX_MESSAGE ? dns_parse(msg, len, &q) : DNS_DROP;

	bool nobodys = v == DNS_REFUSE && q.rcode == RCODE_NXDOMAIN;
	if (v != DNS_QUESTION && !nobodys) {
		bool broken = v == DNS_DROP || q.rcode == RCODE_FORMERR;
		broker_tally_add(b, broken ? TALLY_MALFORMED : TALLY_UNSUPPORTED);
	}
	if (v == DNS_DROP) {
		return 0;
	}
	if (!bucket_take(&b->questions, clock_us())) {
		broker_tally_add(b, TALLY_DNS);
		return 0;
	}
	if (udp && q.udp_size < room) {
		room = q.udp_size;
	}
	if (nobodys) { /* No host can have this name. But a query for it can carry data out, so
		          report it. */
		report_question(b, &q, NULL, REASON_NOT_DECLARED);
	}
	if (v == DNS_REFUSE) {
		return dns_answer(msg, &q, q.rcode, NULL, 0, 0, out, room);
	}
	if (holds_canary(b, &q)) {
		report_question(b, &q, NULL, REASON_CANARY);
		return dns_answer(msg, &q, RCODE_NXDOMAIN, NULL, 0, 0, out, room);
	}
	const struct slot *slot = egress_by_name(b->c->table, q.name, &full);
	if (slot == NULL) {
		report_question(b, &q, NULL, full ? REASON_TOO_MANY_NAMES : REASON_NOT_DECLARED);
		return dns_answer(msg, &q, full ? RCODE_REFUSED : RCODE_NXDOMAIN, NULL, 0, 0, out,
		                  room);
	}
	report_question(b, &q, slot, REASON_OK);
	if (q.type == DNS_A && !slot->literal6) {
		return dns_answer(msg, &q, 0, slot->v4, 1, TTL, out, room);
	}
	if (q.type == DNS_AAAA && b->c->table->v6 && !slot->literal4) {
		return dns_answer(msg, &q, 0, slot->v6, 1, TTL, out, room);
	}
	return dns_answer(msg, &q, 0, NULL, 0, 0, out, room);
}

void broker_dns_datagrams(struct broker *b, int fd)
{
	for (int i = 0; i < 64; i++) {
		uint8_t msg[DNS_MAX_MESSAGE], out[1232];
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC,
		                     (struct sockaddr *)&from, &from_len);
		if (n < 0) {
			return;
		}
		size_t len = answer_question(b, msg, (size_t)n, true, out, sizeof(out));
		if (len > 0) {
			(void)!sendto(fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL,
			              (struct sockaddr *)&from, from_len);
		}
	}
}

void broker_dns_accept(struct broker *b, struct source *listener)
{
	auto_fd client = broker_accept_next(b, listener);

	if (client < 0 || b->n_dns_clients >= MAX_DNS_CLIENTS) {
		return;
	}
	struct dns_client *c = calloc(1, sizeof(*c));
	if (c == NULL) {
		return;
	}
	c->source = (struct source){ .kind = SOURCE_DNS_CLIENT, .fd = client, .owner = c };
	if (broker_watch(b, &c->source) != 0) {
		free(c);
		return;
	}
	(void)steal_fd(&client);
	b->n_dns_clients++;
}

static void dns_close(struct broker *b, struct dns_client *c)
{
	own_close(&c->source.fd);
	b->freed = true;
	free(c);
	b->n_dns_clients--;
}

void broker_dns_turn(struct broker *b, struct source *s)
{
	struct dns_client *c = s->owner;
	ssize_t n = recv(s->fd, c->buf + c->len, sizeof(c->buf) - c->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		dns_close(b, c);
		return;
	}
	c->len += (size_t)n;
	while (c->len >= 2) {
		size_t want = (size_t)c->buf[0] << 8 | c->buf[1];
		uint8_t out[2 + DNS_MAX_MESSAGE];
		if (want > DNS_MAX_MESSAGE) {
			(void)answer_question(b, c->buf + 2, want, false, NULL, 0);
			dns_close(b, c);
			return;
		}
		if (c->len < 2 + want) {
			return;
		}
		size_t len = answer_question(b, c->buf + 2, want, false, out + 2, sizeof(out) - 2);
		out[0] = (uint8_t)(len >> 8);
		out[1] = (uint8_t)len;
		/* Drop a client that does not read its short answer. Drop also a client that gets
		 * no answer: it must not wait for one. */
		if (len == 0 || send(s->fd, out, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			dns_close(b, c);
			return;
		}
		memmove(c->buf, c->buf + 2 + want, c->len - 2 - want);
		c->len -= 2 + want;
	}
}
