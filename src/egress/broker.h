/* broker.h - the process that reads the skill's network bytes.
 *
 * It holds the sandbox's listeners, a socket to the dialler and one to the supervisor. It has no
 * authority: no files (Landlock), no new sockets, no programs (seccomp). It answers DNS from the
 * table, checks the first bytes of each connection, asks the dialler for a rule by number, and
 * relays. A mistake in it can end the egress but cannot widen it. */
#ifndef EGRESS_BROKER_H
#define EGRESS_BROKER_H

#include "egress/listen.h"
#include "egress/table.h"

struct broker_config {
	struct egress_table *table;
	struct listeners *listeners;
	int dial;   /* SOCK_SEQPACKET to the dialler */
	int events; /* SOCK_SEQPACKET to the supervisor; if it is closed, the broker ends */
	int ready;  /* a pipe: confine_or_exit() */
	uint64_t max_connections;
	uint64_t max_connections_per_second;
	uint64_t max_bytes_out;
	uint64_t max_bytes_in;
	bool metered; /* report bytes while connections are open (EGRESS_MOVED) */
};

/* The broker's life, in a forked child of the supervisor. Confines the process first. Borrows
 * `config` and changes its max_connections to what the process's file limit allows. */
_Noreturn void broker_main(struct broker_config *config);

#endif
