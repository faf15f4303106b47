/* range.c - checks address ranges. A range becomes a local route of the sandbox's network, so it
 * must not be wide, and it must not overlap with addresses that have another use in that
 * network. */
#include "policy/range.h"

#include <stddef.h>

#include "base/limits.h"
#include "base/own.h"

/* The first SANDBOX_ROWS rows are the addresses of the broker's names and of its resolver. */
#define SANDBOX_ROWS 2
static const struct {
	const char *range;
	const char *why;
} TAKEN[] = {
	{ "198.18.0.0/15", "it overlaps with 198.18.0.0/15, which the sandbox uses for itself" },
	{ "fd53:7373:6273::/48",
	  "it overlaps with fd53:7373:6273::/48, which the sandbox uses for itself" },
	{ "127.0.0.0/8", "it overlaps with 127.0.0.0/8, which is the sandbox's own loopback" },
	{ "::/96", "it overlaps with ::/96, which contains the sandbox's own loopback" },
	{ "0.0.0.0/8", "it overlaps with 0.0.0.0/8, whose addresses no host has" },
	{ "224.0.0.0/3", "it overlaps with 224.0.0.0/3, whose addresses no host has" },
	{ "fe80::/10", "it overlaps with fe80::/10, whose addresses need an interface" },
	{ "ff00::/8", "it overlaps with ff00::/8, whose addresses no host has" },
};

/* Single addresses that no socket in the sandbox can have. */
static const struct {
	const char *range;
	const char *why;
} NOWHERE[] = {
	{ "0.0.0.0/32", "no host has it" },
	{ "::/128", "no host has it" },
	{ "fe80::/10", "addresses in fe80::/10 need an interface" },
	{ "ff00::/8", "it is in ff00::/8, whose addresses no host has" },
};

static bool cidr_overlaps(const struct cidr *a, const struct cidr *b)
{
	return cidr_contains(a, &b->base) || cidr_contains(b, &a->base);
}

static const char *find_taken(const struct cidr *c, size_t rows, bool as_range)
{
	struct cidr own;

	for (size_t i = 0; i < rows; i++) {
		if (cidr_parse(TAKEN[i].range, &own) && cidr_overlaps(&own, c)) {
			return as_range ? TAKEN[i].range : TAKEN[i].why;
		}
	}
	return NULL;
}

const char *range_of_sandbox(const struct cidr *c)
{
	return find_taken(c, SANDBOX_ROWS, true);
}

uint64_t range_size(const struct cidr *c)
{
	unsigned rest = 128 - c->bits;

	return rest < 64 ? 1ULL << rest : UINT64_MAX;
}

const char *range_problem(const struct egress_rule *rule, const char **ret_remedy)
{
	struct cidr c;

	*ret_remedy = "declare names, single addresses, or ranges of /16 (IPv6: /48) and narrower";
	if (!cidr_parse(rule->domain.s, &c)) {
		return "it is not an address range";
	}
	if (c.bits <
	    (address_is_v4(&c.base) ? ADDRESS_V4_BITS + MIN_RANGE_BITS4 : MIN_RANGE_BITS6)) {
		return "it is too wide";
	}
	const char *why = find_taken(&c, ARRAY_LEN(TAKEN), false);
	if (why != NULL) {
		*ret_remedy = "declare another range, or the hosts by name";
		return why;
	}
	bool many = range_size(&c) > MAX_RANGE_SOCKETS / rule->n_ports;
	if (many && rule->protocol == PROTO_UDP) {
		*ret_remedy = "declare a narrower range, or fewer ports";
		return "udp is limited to 128 pairs of address and port";
	}
	for (size_t i = 0; many && i < rule->n_ports; i++) {
		if (rule->ports[i] == 53) {
			*ret_remedy = "declare single addresses for port 53";
			return "port 53 of so many addresses leads to the sandbox's own resolver";
		}
	}
	return NULL;
}

const char *range_address_problem(const struct egress_rule *rule, const char **ret_remedy)
{
	struct cidr address;
	struct cidr nowhere;

	for (size_t i = 0; i < ARRAY_LEN(NOWHERE) && cidr_parse(rule->domain.s, &address); i++) {
		if (cidr_parse(NOWHERE[i].range, &nowhere) && cidr_overlaps(&nowhere, &address)) {
			*ret_remedy = "declare another address, or the host by name";
			return NOWHERE[i].why;
		}
	}
	return NULL;
}
