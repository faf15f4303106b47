/* egress_event.h - what the broker tells the supervisor: one message per fact.
 *
 * None is lost on the way: the broker waits where the supervisor does not
 * read. How many there can be is bounded where they arise (DNS and new
 * connections have a rate each); what a flood makes of the trace is the
 * supervisor's matter (ledger.h). */
#ifndef EGRESS_EGRESS_EVENT_H
#define EGRESS_EGRESS_EVENT_H

#include <stdint.h>

#include "egress/guard.h"

enum egress_kind {
	EGRESS_RESOLVED,  /* a granted name was asked for */
	EGRESS_UNKNOWN,   /* a name that no rule grants */
	EGRESS_MALFORMED, /* a question that is none, or one that nobody answers here */
	EGRESS_OPENED,    /* a connection was made; before its first byte */
	EGRESS_CARRIED,   /* its end */
	EGRESS_DENIED,    /* one that was not made; with a number: one that was cut off */
	EGRESS_LIMITED,   /* something has to wait, or was dropped, for there was too much of it */
	EGRESS_MOVED,     /* what all connections together have carried so far; only where
	                   * somebody meters the run, and never an event of the trace */
	EGRESS_KINDS,
};

struct egress_event {
	enum egress_kind kind;
	int rule;            /* index into plan->egress; -1: none */
	uint64_t connection; /* number of a connection that was opened; 0: none */
	uint64_t count;      /* how often since the last message; 0: once */
	uint16_t port;
	uint16_t qtype;   /* of a question */
	char name[254];   /* declared for the address, or asked for */
	char shown[254];  /* SNI or Host, as the skill sent it */
	char protocol[8]; /* "tls", "http", "tcp", "udp", "dns" */
	char reason[24];  /* stable code: "ok", "no_sni", "guarded", ... */
	char kind_of[16]; /* with "guarded": the range */
	struct address asked;
	struct address dialled; /* all zero: none */
	uint8_t via_proxy;      /* not 0: `dialled` is the owner's proxy */
	uint8_t unused[7];      /* and no padding: facts are compared as a whole */
	uint64_t bytes_out;
	uint64_t bytes_in;
	uint64_t micros;
};

#endif
