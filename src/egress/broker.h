/* broker.h - the broker, the process that reads the skill's network bytes.
 *
 * It has the sandbox's listeners, a socket to the dialler and a socket to the supervisor. It has no
 * authority: it cannot open files (Landlock), and cannot make sockets or start programs (seccomp).
 * It answers DNS from the table, checks the first bytes of each connection, asks the dialler to
 * connect (it sends the number of the rule that allows this), and relays. A mistake in the broker
 * can end the egress but cannot widen it. */
#ifndef EGRESS_BROKER_H
#define EGRESS_BROKER_H

#include "egress/listen.h"
#include "egress/table.h"

struct broker_config {
	struct egress_table *table;
	struct listeners *listeners;
	int dial;   /* SOCK_SEQPACKET to the dialler */
	int events; /* SOCK_SEQPACKET to the supervisor; if it is closed, the broker ends */
	int ready;  /* a pipe for confine_or_exit() */
	uint64_t max_connections;
	uint64_t max_connections_per_second;
	uint64_t max_bytes_out;
	uint64_t max_bytes_in;
	bool metered; /* report bytes while connections are open (EGRESS_MOVED) */
};

/* The main function of the broker, in a forked child of the supervisor. It confines the process
 * first. Borrows `config`, and lowers its max_connections if the process's file limit does not
 * allow so many. */
_Noreturn void broker_main(struct broker_config *config);

#endif
