/* guard.h - which addresses may be dialled at all.
 *
 * A name that the owner granted may resolve to anything its owner likes; these
 * ranges are refused whatever the name, unless the owner granted the range. So are the
 * addresses of this machine, and of those that are on a network with it, also where they
 * are public: what serves there often trusts the network that a question comes from. */
#ifndef EGRESS_GUARD_H
#define EGRESS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/* NULL: a public address. Else the kind of range it is in ("loopback",
 * "private", "link_local", "metadata", "cgnat", "multicast", "unspecified",
 * "broadcast", "benchmark", "documentation", "reserved", "unique_local"), also
 * through every embedding of IPv4 in IPv6 (mapped, compatible, 6to4, Teredo,
 * NAT64 64:ff9b::/96 and 64:ff9b:1::/48, ISATAP). What is outside 2000::/3 is
 * never public, but for 64:ff9b::/96. */
const char *guard_address_special(const struct address *a);

bool guard_is_loopback(const struct address *a); /* of kind "loopback" */

/* May it be dialled: inside one of the owner's ranges, or public and elsewhere. *ret_kind
 * is the special kind otherwise, "this_machine", "on_link", or "unsure" where the kernel
 * does not tell; also that of an IPv4 address in it. A grant of an IPv4 range does not reach
 * through the embeddings. */
bool guard_allows(const struct address *a, const struct cidr *granted, size_t n_granted,
                  const char **ret_kind);

#endif
