/* guard.h - which addresses may be dialled at all.
 *
 * A granted name may resolve to any address that the name's holder chooses. These ranges are
 * refused for every name, unless the owner granted the range. The addresses of this machine and
 * of hosts on its own networks are refused, too, even if they are public: services there often
 * trust the network that a request comes from. */
#ifndef EGRESS_GUARD_H
#define EGRESS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/* Returns NULL for a public address. Otherwise returns the kind of range it is in ("loopback",
 * "private", "link_local", "metadata", "cgnat", "multicast", "unspecified", "broadcast",
 * "benchmark", "documentation", "reserved", "unique_local"), also through each embedding of IPv4
 * in IPv6 (mapped, compatible, 6to4, Teredo, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, ISATAP). An
 * address outside 2000::/3 is never public, except in 64:ff9b::/96. */
const char *guard_address_special(const struct address *a);

bool guard_is_loopback(const struct address *a); /* of kind "loopback" */

/* May the address be dialled? Yes if it is inside one of the owner's ranges, or public and not
 * near. Otherwise *ret_kind is the special kind, "this_machine", "on_link", or "unsure" if the
 * kernel does not tell; an IPv4 address inside the address is judged as well. A grant of an IPv4
 * range does not reach through the embeddings. */
bool guard_allows(const struct address *a, const struct cidr *granted, size_t n_granted,
                  const char **ret_kind);

#endif
