/* dial.h - the dialler: a process that resolves names and connects, and does nothing else.
 *
 * It gets requests from the broker, which has no authority: a rule by number, a name and a port.
 * It checks that the rule grants exactly that, resolves the name with the host's own resolver,
 * judges each address (guard.h), connects to a judged address and hands the connected socket
 * over. */
#ifndef EGRESS_DIAL_H
#define EGRESS_DIAL_H

#include "egress/table.h"

enum dial_result {
	DIAL_OK,
	DIAL_REFUSED_RULE, /* no such rule, name or port: the broker misbehaves */
	DIAL_NO_NAME,      /* the name does not resolve */
	DIAL_GUARDED,      /* every address is in a refused range */
	DIAL_UNREACHABLE,  /* refused, no route, reset */
	DIAL_TIMEOUT,
	DIAL_BUSY, /* too many at once */
	DIAL_PROXY_UNREACHABLE,
	DIAL_PROXY_REFUSED, /* any other answer that opens no tunnel */
	DIAL_PROXY_AUTH,    /* 407: the proxy wants other credentials */
	DIAL_PROXY_BROKEN,  /* what the proxy sent is not an HTTP answer */
	DIAL_PROXY_NO_UDP,  /* datagrams cannot pass an HTTP proxy */
};

/* The reason code of a result: "ok", "guarded", ... */
const char *dial_result_name(enum dial_result r);

/* What the broker asks for, and so which part of the broker waits for the reply. */
enum dial_kind {
	DIAL_TCP,    /* one connected socket (broker_conn.c) */
	DIAL_UDP,    /* one end of a gate (gate.h, broker_udp.c) */
	DIAL_SPARES, /* TCP sockets that are aimed and not connected (race_aim(), broker_spare.c) */
};

/* Names one request. The broker chooses it and the reply repeats it. */
struct dial_id {
	uint64_t serial;
	enum dial_kind kind;
};

struct dial_request {
	struct dial_id id; /* comes first: it is repeated even if the rest is malformed */
	uint32_t rule;
	uint16_t port;
	uint8_t spares; /* with DIAL_SPARES: how many, 1 to MAX_SPARES; else 0 */
	char name[254];
};

/* With DIAL_OK the sockets come with the reply, non-blocking and CLOEXEC: one, or with
 * DIAL_SPARES at least one and at most as many as were asked for. */
struct dial_reply {
	struct dial_id id;
	enum dial_result result;
	struct address address; /* dialled (the proxy's, if any), or the last refused */
	uint8_t via_proxy;      /* 1: by the owner's proxy (proxy.h) */
	char range[16];         /* with DIAL_GUARDED: "loopback", ... */
	uint32_t valid_us;      /* with DIAL_SPARES: how long the sockets may be used */
};

struct dial_config {
	const struct egress_table *table;
	const struct cidr *allow_private; /* the owner's ranges */
	size_t n_allow_private;
	unsigned timeout_ms; /* per request, all addresses together */
	int ready;           /* a pipe: confine_or_exit(); -1: none */
};

/* The dialler's life, in a forked child of the supervisor. Confines the process first, then
 * serves `sock` (a SOCK_SEQPACKET; one request in each message, replies in any order) until its
 * peer closes it. Requests are served side by side (threads, at most MAX_DIALS at once). The
 * caller must leave it no other fd: the broker's end of the socket, for example, would keep it
 * alive. Borrows `config`. */
_Noreturn void dial_main(int sock, const struct dial_config *config);

#endif
