/* net.h - the sandbox's own network namespace. All: -1 with errno. */
#ifndef OS_NET_H
#define OS_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/address.h"

/* 127.0.0.1 and ::1, and an address of either family that is not the loopback's. */
int net_loopback_up(void);

/* Makes every address of a range local to the namespace, so that it can be
 * listened on and connected to. `address` has 4 or 16 bytes. */
int net_local_range(int family, const uint8_t *address, unsigned bits);

/* A bound socket (listening, for SOCK_STREAM), CLOEXEC and non-blocking. Two that are
 * `shared` can have the same port, one on an address of its own and one on all others. */
int net_listen(const struct address *a, int type, uint16_t port, bool shared);

/* Where a packet to an address would go, as the kernel's routes say; none is sent. */
enum net_place {
	NET_BEYOND, /* to a router, or nowhere */
	NET_HERE,   /* to this machine itself */
	NET_LINK,   /* to a neighbour: without a router, on a network that it shares */
	NET_UNSURE, /* the kernel did not say */
};
enum net_place net_place_of(const struct address *a);

/* Does a socket in the network namespace of `pid` listen (or, of datagrams, is it bound) on
 * this port of the address, or of all addresses? */
bool net_is_served(pid_t pid, const struct address *a, uint16_t port, bool udp);

#endif
