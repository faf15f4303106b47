/* net.h - the sandbox's own network namespace. A function that returns an int returns -1 with errno
 * on failure. */
#ifndef OS_NET_H
#define OS_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/address.h"

/* Sets up 127.0.0.1 and ::1, and one address of each family outside of the loopback range. */
int net_loopback_up(void);

/* Makes every address of a range local to the namespace, so that sockets can be bound and connected
 * to these addresses. `address` has 4 or 16 bytes. */
int net_local_range(int family, const uint8_t *address, unsigned bits);

/* Returns a bound socket (listening, for SOCK_STREAM) that is CLOEXEC and non-blocking. Two
 * `shared` sockets can have the same port, one on a single address and one on all addresses. */
int net_listen(const struct address *a, int type, uint16_t port, bool shared);

/* Where the kernel's routes would send a packet for an address. No packet is sent. */
enum net_place {
	NET_BEYOND, /* to a router, or no route */
	NET_HERE,   /* to this machine itself */
	NET_LINK,   /* to a neighbour in a directly connected network */
	NET_UNSURE, /* the kernel gave no usable answer */
};
enum net_place net_place_of(const struct address *a);

/* True if a socket in the network namespace of `pid` listens on this port, at this address or at
 * all addresses. For UDP: if one is bound. */
bool net_is_served(pid_t pid, const struct address *a, uint16_t port, bool udp);

#endif
