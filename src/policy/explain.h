/* explain.h - declarations that the two explanations of a plan (text and JSON) share. */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

#include <stddef.h>

#include "policy/plan.h"

#define MAX_EXPLANATION (1UL << 24)

/* Writes into `out` where a rule comes from: the line of the manifest, or the owner's flag. Returns
 * `out`. */
const char *explain_rule_where(const struct ssb_plan *p, const struct egress_rule *r, char *out,
                               size_t size);

/* What a proxy is used for. USE_NONE: there is nothing to explain. Either there is no proxy for
 * this use, or it is the proxy of the first use, which was explained as USE_ALL. */
enum explain_use { USE_NONE, USE_HTTP, USE_OTHER, USE_ALL };

enum explain_use explain_proxy_use(const struct ssb_plan *p, int use);

/* Writes the proxy's URL without its credentials into `out`; returns `out`. */
const char *explain_proxy_url(const struct upstream *u, char *out, size_t size);

#endif
