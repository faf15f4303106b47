/* resolve.h - what the host's resolver says of a name.
 *
 * Both fill `targets` (MAX_DIAL_ADDRESSES) and return how many there are, 0: none.
 * `type` is SOCK_STREAM or SOCK_DGRAM. Any thread may call them. Nothing is
 * judged here: that is the caller's, for every connection anew. */
#ifndef EGRESS_RESOLVE_H
#define EGRESS_RESOLVE_H

#include <stddef.h>

#include "egress/race.h"

/* Asks; this may take as long as the resolver likes. */
size_t resolve(const char *name, int type, struct race_target *targets);

/* What was answered a moment ago, without waiting; good until *ret_until_us. */
size_t resolve_known(const char *name, int type, struct race_target *targets,
                     int64_t *ret_until_us);

#endif
