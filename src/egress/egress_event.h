/* egress_event.h - the messages from the broker to the supervisor, one for each fact.
 *
 * No message is lost on the way: if the supervisor does not read, the broker waits. The number of
 * messages is limited at its source, because DNS queries and new connections have a maximum rate.
 * The ledger limits how much a flood can add to the trace (ledger.h). */
#ifndef EGRESS_EGRESS_EVENT_H
#define EGRESS_EGRESS_EVENT_H

#include <stdint.h>

#include "egress/guard.h"
#include "trace/codes.h"

enum egress_kind {
	EGRESS_RESOLVED,  /* a granted name was resolved */
	EGRESS_UNKNOWN,   /* the skill asked for a name that no rule grants */
	EGRESS_MALFORMED, /* a malformed DNS question, or one of an unsupported kind */
	EGRESS_OPENED,    /* a connection was made; sent before its first byte */
	EGRESS_CARRIED,   /* a connection ended */
	EGRESS_DENIED,  /* an attempt was refused or, if `connection` is set, an open connection was
	                   cut off */
	EGRESS_LIMITED, /* attempts must wait or were dropped, because there were too many */
	EGRESS_MOVED,   /* total bytes of all connections; never an event of the trace */
	EGRESS_KINDS,
};

struct egress_event {
	enum egress_kind kind;
	int rule;            /* index into plan->egress; -1: no rule */
	uint64_t connection; /* number of the open connection; 0: none */
	uint64_t count;      /* how often the fact happened since the last message; 0 means once */
	uint16_t port;
	uint16_t qtype;  /* type of the DNS question */
	char name[254];  /* the declared name of the address, or the name that was asked for */
	char shown[254]; /* SNI or Host, as the skill sent it */
	enum event_protocol protocol;
	enum reason reason;
	char kind_of[16]; /* with REASON_GUARDED: the range */
	struct address asked;
	struct address dialled; /* all zero: no address */
	uint8_t via_proxy;      /* not 0: `dialled` is the address of the owner's proxy */
	uint8_t inward;         /* with REASON_BYTE_LIMIT: not 0: it is the limit of bytes in */
	uint8_t unused[6];      /* takes the place of padding, because the ledger compares events
	                           with memcmp() */
	uint64_t bytes_out;
	uint64_t bytes_in;
	uint64_t micros;
};

#endif
