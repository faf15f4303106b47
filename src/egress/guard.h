/* guard.h - decides which addresses may be dialled.
 *
 * A granted name may resolve to any address that the owner of the domain chooses. Therefore special
 * addresses are refused for every name, unless the owner granted their range. The addresses of this
 * machine and of hosts on its own networks are refused, too, even if they are public, because
 * services there often trust the network that a request comes from. */
#ifndef EGRESS_GUARD_H
#define EGRESS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/* Returns NULL for a public address. Otherwise returns the kind of its range: "loopback",
 * "private", "link_local", "metadata", "cgnat", "multicast", "unspecified", "broadcast",
 * "benchmark", "documentation", "reserved" or "unique_local". An IPv4 address inside an IPv6
 * address is judged as well (mapped, compatible, 6to4, Teredo, NAT64 64:ff9b::/96 and
 * 64:ff9b:1::/48, ISATAP). An address outside 2000::/3 is never public, except in 64:ff9b::/96. */
const char *guard_address_special(const struct address *a);

bool guard_is_loopback(const struct address *a); /* true if the kind of `a` is "loopback" */

/* Returns whether the address may be dialled: it is in one of the owner's ranges, or it is public
 * and not on this machine or its own networks. If the address may not be dialled, *ret_kind is the
 * kind of the special address, "this_machine", "on_link", or "unsure" if the kernel does not say
 * where the address is. An IPv4 address inside an IPv6 address is judged as well, but a granted
 * IPv4 range does not allow such an IPv6 address. */
bool guard_allows(const struct address *a, const struct cidr *granted, size_t n_granted,
                  const char **ret_kind);

#endif
