/* range.h - which addresses and ranges of them a rule may be for. */
#ifndef POLICY_RANGE_H
#define POLICY_RANGE_H

#include "base/address.h"
#include "manifest/manifest.h"

/* The range that the sandbox's own network lies in, as text, if it meets `c`;
 * NULL otherwise. */
const char *range_of_sandbox(const struct cidr *c);

/* How many addresses are in it; UINT64_MAX for more than that. */
uint64_t range_size(const struct cidr *c);

/* NULL, or why a rule of kind HOST_CIDR cannot be carried; *ret_remedy then. */
const char *range_problem(const struct egress_rule *rule, const char **ret_remedy);

/* The same for a rule of kind HOST_ADDRESS. */
const char *range_address_problem(const struct egress_rule *rule, const char **ret_remedy);

#endif
