/* resolve.h - resolves names with the host's resolver.
 *
 * Both functions fill `targets` (room for MAX_DIAL_ADDRESSES) and return the number of targets,
 * which may be 0. `type` is SOCK_STREAM or SOCK_DGRAM. Both may be called from any thread. They do
 * not judge the addresses: the caller must judge them again for each connection. */
#ifndef EGRESS_RESOLVE_H
#define EGRESS_RESOLVE_H

#include <stddef.h>

#include "egress/race.h"

/* Asks the resolver. This may block for as long as the resolver takes. */
size_t resolve(const char *name, int type, struct race_target *targets);

/* Returns a recent answer from the cache, without waiting; it is valid until *ret_until_us. */
size_t resolve_known(const char *name, int type, struct race_target *targets,
                     int64_t *ret_until_us);

#endif
