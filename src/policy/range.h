/* range.h - the addresses and address ranges that a rule may name. */
#ifndef POLICY_RANGE_H
#define POLICY_RANGE_H

#include "base/address.h"
#include "manifest/manifest.h"

/* Returns the range of the sandbox's own network, as text, if it overlaps with `c`; NULL
 * otherwise. */
const char *range_of_sandbox(const struct cidr *c);

/* Returns how many addresses the range has, at most UINT64_MAX. */
uint64_t range_size(const struct cidr *c);

/* Returns NULL, or why a rule of kind HOST_CIDR cannot be enforced, with a remedy in *ret_remedy.
 * Both texts are static. */
const char *range_problem(const struct egress_rule *rule, const char **ret_remedy);

/* Like range_problem(), for a rule of kind HOST_ADDRESS. */
const char *range_address_problem(const struct egress_rule *rule, const char **ret_remedy);

#endif
