/* dial_world.h - a network for tests of dialling. It has only loopback, a DNS server on 127.0.0.1
 * that records the names it is asked for, and its own hosts, resolv.conf and nsswitch.conf. */
#ifndef TESTS_DIAL_WORLD_H
#define TESTS_DIAL_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The ports on 127.0.0.1. OPEN has a listener, on ::1 too. CLOSED has none. FULL has a listener
 * that answers no client, because its queue is full. DATAGRAM is UDP. */
enum { OPEN = 4000, CLOSED = 4001, FULL = 4002, DATAGRAM = 4003 };

struct world {
	int open4, open6, datagram4;
	pid_t dns;
};

/* Moves the calling process into namespaces of its own. If a step fails, the process exits. */
void world_start(struct world *w);
void world_stop(struct world *w);

/* Returns true if the DNS server got a query for this name. */
bool world_was_asked(const char *name);
int world_listen(uint8_t last, int type, uint16_t port); /* listens on 127.0.0.LAST */

#endif
