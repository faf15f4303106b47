/* dial.h - the dialler, a process that resolves names and connects, and does nothing else.
 *
 * It gets requests from the broker, which has no authority. A request consists of the number of a
 * rule, a name and a port. The dialler checks that the rule grants exactly this, resolves the name
 * with the host's own resolver, judges each address (guard.h), connects to an allowed address and
 * passes the connected socket to the broker. */
#ifndef EGRESS_DIAL_H
#define EGRESS_DIAL_H

#include "egress/table.h"
#include "trace/codes.h"

enum dial_result {
	DIAL_OK,
	DIAL_REFUSED_RULE, /* there is no such rule, name or port, so the broker misbehaves */
	DIAL_NO_NAME,      /* the name does not resolve */
	DIAL_GUARDED,      /* every address is in a refused range */
	DIAL_UNREACHABLE,  /* refused, no route, reset */
	DIAL_TIMEOUT,
	DIAL_BUSY, /* too many requests at the same time */
	DIAL_PROXY_UNREACHABLE,
	DIAL_PROXY_REFUSED, /* the proxy opened no tunnel; its status is not 407 */
	DIAL_PROXY_AUTH,    /* the proxy answered 407: it wants other credentials */
	DIAL_PROXY_BROKEN,  /* the proxy did not send a valid HTTP answer */
	DIAL_PROXY_NO_UDP,  /* datagrams cannot pass an HTTP proxy */
};

/* Returns the reason for `r`; REASON_UNKNOWN if `r` is not in enum dial_result. */
enum reason dial_result_reason(enum dial_result r);

/* The kind of socket that the broker requests. It also decides which part of the broker waits for
 * the reply. */
enum dial_kind {
	DIAL_TCP,    /* one connected socket (broker_conn.c) */
	DIAL_UDP,    /* one end of a gate (gate.h, broker_udp.c) */
	DIAL_SPARES, /* TCP sockets that are aimed but not connected (race_aim(), broker_spare.c) */
};

/* Identifies one request. The broker chooses the id, and the reply repeats it. */
struct dial_id {
	uint64_t serial;
	enum dial_kind kind;
};

struct dial_request {
	struct dial_id id; /* must be first: the reply repeats it even if the rest is malformed */
	uint32_t rule;
	uint16_t port;
	uint8_t spares; /* with DIAL_SPARES: the number of sockets, 1 to MAX_SPARES; else 0 */
	char name[254];
};

/* With DIAL_OK the sockets are sent with the reply (non-blocking, CLOEXEC): one or, with
 * DIAL_SPARES, at least one and at most as many as were requested. */
struct dial_reply {
	struct dial_id id;
	enum dial_result result;
	struct address address; /* the address that was dialled (the proxy's, if there is one), or
	                           the last refused one */
	uint8_t via_proxy;      /* 1: connected through the owner's proxy (proxy.h) */
	char range[16];         /* with DIAL_GUARDED: the kind of `address`, such as "loopback" */
	uint32_t valid_us;      /* with DIAL_SPARES: how long the sockets may be used */
};

struct dial_config {
	const struct egress_table *table;
	const struct cidr *allow_private; /* the owner's ranges */
	size_t n_allow_private;
	unsigned timeout_ms; /* time for one request, with all addresses of its name */
	int ready;           /* a pipe for confine_or_exit(); -1: none */
};

/* The main function of the dialler, in a forked child of the supervisor. It confines the process
 * first. Then it serves `sock` (a SOCK_SEQPACKET; one request in each message, replies in any
 * order) until the peer closes it. Requests are served concurrently, in at most MAX_DIALS threads.
 * The caller must have closed all other fds: an open copy of the broker's end of the socket, for
 * example, would keep the dialler alive. Borrows `config`. */
_Noreturn void dial_main(int sock, const struct dial_config *config);

#endif
