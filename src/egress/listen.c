/* listen.c - makes the routes and the listening sockets of the sandbox's network. */
#include "egress/listen.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/net.h"
#include "policy/range.h"

/* 198.18.0.0/15 is the range for benchmarks, which no network routes. The IPv6 prefix is a private
 * one that was chosen for skillsandbox. */
static const uint8_t RANGE4[4] = { 198, 18, 0, 0 };
static const uint8_t RANGE6[16] = { 0xfd, 0x53, 0x73, 0x73, 0x62, 0x73 };
#define RANGE4_BITS 15
#define RANGE6_BITS 48
#define DNS_PORT    53

static int fail_listen(struct ssb_error *err, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "net", "cannot %s in the sandbox's network", what);
}

/* The listeners made so far. `taken` has one bit for each TCP port on which one listener serves all
 * addresses of a family. */
struct maker {
	const struct egress_table *t;
	struct listeners *l;
	uint8_t taken[2][(UINT16_MAX + 1) / 8]; /* IPv4, IPv6 */
};

static int add_listener(struct maker *m, enum listener_kind kind, const struct address *a,
                        uint16_t port, struct ssb_error *err)
{
	struct listeners *l = m->l;

	if (l->n == MAX_LISTENERS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "net",
		                "the plan has more than %d pairs of name and port; declare fewer "
		                "names or ports",
		                MAX_LISTENERS);
	}
	bool datagrams = kind == LISTEN_DNS_UDP || kind == LISTEN_UDP;
	/* In a learning run, two listeners have this port: one at all addresses, and the resolver's
	 * own. So they must share it. */
	bool shared = !datagrams && port == DNS_PORT && m->t->plan->learning != LEARNING_NOT;
	int fd = net_listen(a, datagrams ? SOCK_DGRAM : SOCK_STREAM, port, shared);
	if (fd < 0) {
		return fail_listen(err, "listen");
	}
	/* Accepted sockets inherit this option. If the broker dies, the kernel resets its
	 * connections, so that no client mistakes an incomplete answer for a complete one. */
	if (kind == LISTEN_TCP) {
		struct linger reset = { .l_onoff = 1, .l_linger = 0 };
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	l->fd[l->n] = fd;
	l->kind[l->n++] = kind;
	return 0;
}

static int make_routes(const struct egress_table *t, struct ssb_error *err)
{
	if (net_local_range(AF_INET, RANGE4, RANGE4_BITS) != 0 ||
	    (t->v6 && net_local_range(AF_INET6, RANGE6, RANGE6_BITS) != 0)) {
		return fail_listen(err, "set the routes");
	}
	for (size_t i = 0; i < t->n_slots; i++) {
		const struct slot *s = &t->slots[i];
		unsigned bits = s->range.bits;
		if ((s->literal4 && net_local_range(AF_INET, s->v4, bits - ADDRESS_V4_BITS) != 0) ||
		    (s->literal6 && net_local_range(AF_INET6, s->v6, bits) != 0)) {
			return fail_listen(err, "set the route of an address");
		}
	}
	return 0;
}

/* Listens at the resolver's own addresses, and at the addresses where programs expect a resolver on
 * this machine. On loopback only UDP is served, because without a listener a UDP query would wait
 * in vain for an answer, while a TCP connection is refused at once. */
static int make_dns(struct maker *m, struct ssb_error *err)
{
	for (size_t i = 0; i < N_RESOLVERS; i++) {
		struct address a = { { 0 } };
		(void)address_parse(EGRESS_RESOLVERS[i], &a);
		if (!egress_resolves_at(m->t, &a)) {
			continue;
		}
		if (add_listener(m, LISTEN_DNS_UDP, &a, DNS_PORT, err) != 0 ||
		    (!guard_is_loopback(&a) &&
		     add_listener(m, LISTEN_DNS_TCP, &a, DNS_PORT, err) != 0)) {
			return -1;
		}
	}
	return 0;
}

static bool is_taken(const struct maker *m, bool v6, uint16_t port)
{
	return (m->taken[v6][port / 8] >> port % 8 & 1) != 0;
}

/* Makes one socket for the port on all addresses of the family. getsockname() of an accepted
 * connection says which address the skill meant. */
static int take_port(struct maker *m, bool v6, uint16_t port, struct ssb_error *err)
{
	static const struct address ANY4 = { { [10] = 0xff, 0xff } }, ANY6;

	if (is_taken(m, v6, port)) {
		return 0;
	}
	m->taken[v6][port / 8] |= (uint8_t)(1U << port % 8);
	return add_listener(m, LISTEN_TCP, v6 ? &ANY6 : &ANY4, port, err);
}

/* Makes a socket for each address of a range, except for addresses that belong to a narrower
 * rule. */
static int make_each(struct maker *m, const struct slot *s, enum listener_kind kind, uint16_t port,
                     struct ssb_error *err)
{
	for (uint64_t i = 0; i < range_size(&s->range); i++) {
		struct address a = s->range.base;
		a.b[15] = (uint8_t)(a.b[15] + i);
		if (egress_is_at(m->t, s, &a) && add_listener(m, kind, &a, port, err) != 0) {
			return -1;
		}
	}
	return 0;
}

_Static_assert(MAX_RANGE_SOCKETS <= 256, "the addresses of such a range differ in one byte");

/* Makes the sockets of one port of one slot. Each socket is bound to one address, so that replies
 * come from the address that was asked. Only wide ranges take their TCP ports on all addresses. */
static int make_port(struct maker *m, const struct slot *s, enum listener_kind kind, uint16_t port,
                     struct ssb_error *err)
{
	bool tcp = kind == LISTEN_TCP;
	bool v4 = !s->literal6 && !(tcp && is_taken(m, false, port));
	bool v6 = !s->literal4 && (m->t->v6 || s->literal6) && !(tcp && is_taken(m, true, port));

	if (s->literal4 || s->literal6) {
		return v4 || v6 ? make_each(m, s, kind, port, err) : 0;
	}
	struct address a4 = address_of_v4(s->v4), a6;
	memcpy(a6.b, s->v6, sizeof(a6.b));
	if (v4 && add_listener(m, kind, &a4, port, err) != 0) {
		return -1;
	}
	return v6 ? add_listener(m, kind, &a6, port, err) : 0;
}

/* Makes the sockets for all rules that cover a slot, each port once for TCP and once for UDP. If
 * `wide` is true, makes only the TCP ports; for wide ranges this must be done before all other
 * slots. */
static int make_slot(struct maker *m, const struct slot *s, bool wide, struct ssb_error *err)
{
	const struct ssb_plan *p = m->t->plan;

	for (size_t r = 0; r < p->n_egress; r++) {
		bool udp = p->egress[r].protocol == PROTO_UDP;
		for (size_t i = 0; i < p->egress[r].n_ports && !(wide && udp); i++) {
			uint16_t port = p->egress[r].ports[i];
			if (egress_rule_for(m->t, s, port, udp) != (int)r) {
				continue; /* the port belongs to another rule */
			}
			if ((wide ? take_port(m, s->literal6, port, err)
			          : make_port(m, s, udp ? LISTEN_UDP : LISTEN_TCP, port, err)) !=
			    0) {
				return -1;
			}
		}
	}
	return 0;
}

/* Takes each port on all addresses. This is for a learning run, which has a rule for every name,
 * and so too many names for single addresses. */
static int make_learning(struct maker *m, struct ssb_error *err)
{
	const struct ssb_plan *p = m->t->plan;

	for (size_t r = 0; r < p->n_egress; r++) {
		for (size_t i = 0; i < p->egress[r].n_ports; i++) {
			uint16_t port = p->egress[r].ports[i];
			if (take_port(m, false, port, err) != 0 ||
			    (m->t->v6 && take_port(m, true, port, err) != 0)) {
				return -1;
			}
		}
	}
	return 0;
}

int listeners_make(const struct egress_table *t, struct listeners *l, struct ssb_error *err)
{
	assert(t != NULL && l != NULL);
	struct maker m = { .t = t, .l = l };

	l->n = 0;
	if ((t->plan->n_egress > 0 && make_routes(t, err) != 0) || make_dns(&m, err) != 0) {
		return -1;
	}
	if (t->plan->learning != LEARNING_NOT) {
		return make_learning(&m, err);
	}
	for (size_t i = 0; i < t->n_slots; i++) {
		if (t->slots[i].wide && make_slot(&m, &t->slots[i], true, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < t->n_slots; i++) {
		if (make_slot(&m, &t->slots[i], false, err) != 0) {
			return -1;
		}
	}
	return 0;
}

void listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++) {
		own_close(&l->fd[i]);
	}
	l->n = 0;
}
