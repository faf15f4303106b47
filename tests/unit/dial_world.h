/* dial_world.h - a network for tests of dialling: only loopback, a DNS server on 127.0.0.1 that
 * records its questions, and the tests' own hosts, resolv.conf and nsswitch.conf. */
#ifndef TESTS_DIAL_WORLD_H
#define TESTS_DIAL_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Ports on 127.0.0.1 (OPEN on ::1 too): a listener; no listener; a listener that answers no
 * client, because its queue is full; UDP. */
enum { OPEN = 4000, CLOSED = 4001, FULL = 4002, DATAGRAM = 4003 };

struct world {
	int open4, open6, datagram4;
	pid_t dns;
};

/* Moves the calling process into its own namespaces; what fails ends it. */
void world_start(struct world *w);
void world_stop(struct world *w);

bool world_was_asked(const char *name);                  /* the DNS server */
int world_listen(uint8_t last, int type, uint16_t port); /* on 127.0.0.LAST */

#endif
