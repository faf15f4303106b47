/* proxy.h - dials by the owner's HTTP proxy, with CONNECT.
 *
 * The proxy resolves the name, so the server's address cannot be judged here. Only addresses that
 * a rule itself names are judged. The proxy's own address is the owner's choice and is allowed
 * wherever it lies. */
#ifndef EGRESS_PROXY_H
#define EGRESS_PROXY_H

#include "egress/dial.h"
#include "egress/race.h"

/* Returns the proxy for a request that a rule grants. NULL: the request is dialled directly,
 * because there is no proxy, no_proxy has the host, or the host is this machine. */
const struct upstream *proxy_for(const struct ssb_plan *plan, const struct dial_request *q);

/* The host's resolver; returns how many targets there are. */
typedef size_t proxy_resolver(const char *name, int type, struct race_target *targets);

/* Connects to the proxy and asks it for the host. Fills the reply. Returns the new socket, from
 * which the server's first byte is read next, or -1. */
int proxy_dial(const struct dial_config *config, const struct upstream *proxy,
               const struct dial_request *q, proxy_resolver *resolve, int64_t deadline_us,
               struct dial_reply *reply);

#endif
