#include "egress/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/own.h"
#include "os/net.h"

/* The benchmark range, which nobody routes, and a local prefix of our own. */
static const uint8_t RANGE4[4] = { 198, 18, 0, 0 };
static const uint8_t RANGE6[16] = { 0xfd, 0x53, 0x73, 0x73, 0x62, 0x73 };
#define RANGE4_BITS 15
#define RANGE6_BITS 48

static int fail(struct ssb_error *err, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "net", "cannot %s in the sandbox's network", what);
}

static int add(struct listeners *l, enum listener_kind kind, int family, const uint8_t *address,
               uint16_t port, struct ssb_error *err)
{
	if (l->n == MAX_LISTENERS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "net",
		                "more than %d pairs of name and port; declare fewer",
		                MAX_LISTENERS);
	}
	bool datagrams = kind == LISTEN_DNS_UDP || kind == LISTEN_UDP;
	int fd = net_listen(family, datagrams ? SOCK_DGRAM : SOCK_STREAM, address, port);
	if (fd < 0) {
		return fail(err, "listen");
	}
	l->fd[l->n] = fd;
	l->kind[l->n++] = kind;
	return 0;
}

static int make_routes(const struct egress_table *t, struct ssb_error *err)
{
	if (net_local_range(AF_INET, RANGE4, RANGE4_BITS) != 0 ||
	    (t->v6 && net_local_range(AF_INET6, RANGE6, RANGE6_BITS) != 0)) {
		return fail(err, "set the routes");
	}
	for (size_t i = 0; i < t->n_slots; i++) {
		const struct slot *s = &t->slots[i];
		if ((s->literal4 && net_local_range(AF_INET, s->v4, 32) != 0) ||
		    (s->literal6 && net_local_range(AF_INET6, s->v6, 128) != 0)) {
			return fail(err, "set the route of an address");
		}
	}
	return 0;
}

static int make_dns(const struct egress_table *t, struct listeners *l, struct ssb_error *err)
{
	uint8_t v4[4], v6[16];

	(void)inet_pton(AF_INET, EGRESS_DNS4, v4);
	(void)inet_pton(AF_INET6, EGRESS_DNS6, v6);
	if (add(l, LISTEN_DNS_UDP, AF_INET, v4, 53, err) != 0 ||
	    add(l, LISTEN_DNS_TCP, AF_INET, v4, 53, err) != 0) {
		return -1;
	}
	return t->v6 && (add(l, LISTEN_DNS_UDP, AF_INET6, v6, 53, err) != 0 ||
	                 add(l, LISTEN_DNS_TCP, AF_INET6, v6, 53, err) != 0)
	               ? -1
	               : 0;
}

/* The ports of all rules that a slot falls under, each once for TCP and once for
 * UDP. Each socket is bound to one address: replies leave from the one asked. */
static int make_slot(const struct egress_table *t, const struct slot *s, struct listeners *l,
                     struct ssb_error *err)
{
	const struct ssb_plan *p = t->plan;

	for (size_t r = 0; r < p->n_egress; r++) {
		bool udp = p->egress[r].protocol == PROTO_UDP;
		enum listener_kind kind = udp ? LISTEN_UDP : LISTEN_TCP;
		for (size_t i = 0; i < p->egress[r].n_ports; i++) {
			uint16_t port = p->egress[r].ports[i];
			if (egress_rule_for(t, s, port, udp) != (int)r) {
				continue; /* another rule's */
			}
			if (!s->literal6 && add(l, kind, AF_INET, s->v4, port, err) != 0) {
				return -1;
			}
			if (!s->literal4 && (t->v6 || s->literal6) &&
			    add(l, kind, AF_INET6, s->v6, port, err) != 0) {
				return -1;
			}
		}
	}
	return 0;
}

int listeners_make(const struct egress_table *t, struct listeners *l, struct ssb_error *err)
{
	l->n = 0;
	if (make_routes(t, err) != 0 || make_dns(t, l, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < t->n_slots; i++) {
		if (make_slot(t, &t->slots[i], l, err) != 0) {
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
