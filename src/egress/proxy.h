/* proxy.h - dials through the owner's HTTP proxy, with CONNECT.
 *
 * The proxy resolves the name, so the server's address cannot be judged here. Only an address that
 * a rule itself contains is judged. The proxy's own address is chosen by the owner, so it is always
 * allowed. */
#ifndef EGRESS_PROXY_H
#define EGRESS_PROXY_H

#include "egress/dial.h"
#include "egress/race.h"

/* Returns the proxy for a request that a rule grants. Returns NULL if the request must be dialled
 * directly, because there is no proxy, no_proxy contains the host, or the host is this machine. */
const struct upstream *proxy_for(const struct ssb_plan *plan, const struct dial_request *q);

/* A function that fills `targets` with the addresses of `name`, by the host's resolver. It returns
 * the number of targets. */
typedef size_t proxy_resolver(const char *name, int type, struct race_target *targets);

/* Connects to the proxy, asks it for a tunnel to the host, and fills the reply. Returns the new
 * socket, from which the server's first byte is read next, or -1. */
int proxy_dial(const struct dial_config *config, const struct upstream *proxy,
               const struct dial_request *q, proxy_resolver *resolve, int64_t deadline_us,
               struct dial_reply *reply);

#endif
