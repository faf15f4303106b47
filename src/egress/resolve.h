/* resolve.h - what the host's resolver says about a name.
 *
 * Both functions fill `targets` (room for MAX_DIAL_ADDRESSES) and return how many there are; 0:
 * none. `type` is SOCK_STREAM or SOCK_DGRAM. They may be called from any thread. Nothing is
 * judged here: the caller must judge the addresses, anew for each connection. */
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
