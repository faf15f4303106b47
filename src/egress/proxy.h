/* proxy.h - dialling by the owner's HTTP proxy, with CONNECT.
 *
 * The proxy resolves the name, so that no address of its can be judged here:
 * only addresses that a rule itself names are. The proxy's own address is the
 * owner's word, wherever it lies. */
#ifndef EGRESS_PROXY_H
#define EGRESS_PROXY_H

#include "egress/dial.h"
#include "egress/race.h"

/* The proxy for a request that a rule grants; NULL: it is dialled directly,
 * for there is none, or no_proxy has the host, or the host is this machine. */
const struct upstream *proxy_for(const struct ssb_plan *plan, const struct dial_request *q);

/* The host's resolver; returns how many targets there are. */
typedef size_t proxy_resolver(const char *name, int type, struct race_target *targets);

/* Connects to the proxy and asks it for the host. Fills the reply; the socket,
 * with the server's first byte next in it, or -1. */
int proxy_dial(const struct dial_config *config, const struct upstream *proxy,
               const struct dial_request *q, proxy_resolver *resolve, int64_t deadline_us,
               struct dial_reply *reply);

#endif
