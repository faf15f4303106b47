/* event.h - what the broker tells the supervisor: one message per fact. */
#ifndef EGRESS_EVENT_H
#define EGRESS_EVENT_H

#include <stdint.h>

#include "egress/guard.h"

enum egress_kind {
	EGRESS_RESOLVED, /* a granted name was asked for */
	EGRESS_UNKNOWN,  /* a name that no rule grants */
	EGRESS_CARRIED,  /* a connection that was made, at its end */
	EGRESS_DENIED,   /* one that was not */
};

struct egress_event {
	enum egress_kind kind;
	int rule; /* index into plan->egress; -1: none */
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
	uint64_t bytes_out;
	uint64_t bytes_in;
	uint64_t micros;
};

#endif
