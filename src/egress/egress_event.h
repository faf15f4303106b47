/* egress_event.h - what the broker tells the supervisor: one message for each fact.
 *
 * No message is lost on the way: the broker waits while the supervisor does not read. The number
 * of messages is bounded at its source (DNS questions and new connections have a rate each); the
 * ledger bounds what a flood adds to the trace (ledger.h). */
#ifndef EGRESS_EGRESS_EVENT_H
#define EGRESS_EGRESS_EVENT_H

#include <stdint.h>

#include "egress/guard.h"

enum egress_kind {
	EGRESS_RESOLVED,  /* a granted name was resolved */
	EGRESS_UNKNOWN,   /* a name was asked for that no rule grants */
	EGRESS_MALFORMED, /* a malformed DNS question, or one of an unsupported kind */
	EGRESS_OPENED,    /* a connection was made; sent before its first byte */
	EGRESS_CARRIED,   /* a connection ended */
	EGRESS_DENIED,    /* refused; with a connection number: cut off */
	EGRESS_LIMITED,   /* something waits or was dropped: too much of it */
	EGRESS_MOVED,     /* bytes of all connections; never an event of the trace */
	EGRESS_KINDS,
};

struct egress_event {
	enum egress_kind kind;
	int rule;            /* index into plan->egress; -1: none */
	uint64_t connection; /* number of the open connection; 0: none */
	uint64_t count;      /* times since the last message; 0 means once */
	uint16_t port;
	uint16_t qtype;   /* of a DNS question */
	char name[254];   /* the declared name of the address, or the name asked for */
	char shown[254];  /* SNI or Host, as the skill sent it */
	char protocol[8]; /* "tls", "http", "tcp", "udp", "dns" */
	char reason[24];  /* stable code: "ok", "no_sni", "guarded", ... */
	char kind_of[16]; /* with "guarded": the range */
	struct address asked;
	struct address dialled; /* all zero: none */
	uint8_t via_proxy;      /* not 0: `dialled` is the address of the owner's proxy */
	uint8_t unused[7];      /* no padding: the ledger compares facts with memcmp() */
	uint64_t bytes_out;
	uint64_t bytes_in;
	uint64_t micros;
};

#endif
