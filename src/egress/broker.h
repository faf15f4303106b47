/* broker.h - the process that reads the skill's network bytes.
 *
 * It holds the sandbox's ends (listeners), a socket to the dialler and one to
 * the supervisor, and no authority: no files (Landlock), no new sockets, no
 * programs (seccomp). It answers DNS from the table, checks the first bytes of
 * each connection, asks the dialler for a rule by number, and relays. What it
 * gets wrong can end the egress, not widen it. */
#ifndef EGRESS_BROKER_H
#define EGRESS_BROKER_H

#include "egress/listen.h"
#include "egress/table.h"

struct broker_config {
	struct egress_table *table;
	struct listeners *listeners;
	int dial;   /* SOCK_SEQPACKET to the dialler */
	int events; /* SOCK_SEQPACKET to the supervisor; its end is ours */
	int ready;  /* confine.h */
	uint64_t max_connections;
	uint64_t max_connections_per_second;
	uint64_t max_bytes_out;
	uint64_t max_bytes_in;
	bool metered; /* somebody wants to know what is carried while it is */
};

_Noreturn void broker_main(struct broker_config *config);

#endif
