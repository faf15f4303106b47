/* table.h - the network rules of a plan, with the addresses that stand for their names. Broker,
 * dialler and supervisor use the same table: the supervisor makes it before it forks the others, so
 * each has a copy.
 *
 * Every exact name has a synthetic address of each family. A wildcard has a pool of such addresses;
 * each name gets one of them when the skill asks for it. Therefore a connection is always for
 * exactly one name, even if the name shares its real address with others. A literal address of the
 * plan is its own name. A range of addresses has one slot, and the name of each connection is the
 * address that it asked for. */
#ifndef EGRESS_TABLE_H
#define EGRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "egress/guard.h"
#include "policy/plan.h"

#define EGRESS_DNS4 "198.18.0.53"
#define EGRESS_DNS6 "fd53:7373:6273::53"

/* The protocol that the first bytes of a connection must have. */
enum first_bytes { FIRST_RAW, FIRST_TLS, FIRST_HTTP };

struct slot {
	unsigned rule;             /* index into plan->egress of the rule that made the slot */
	char name[HOST_NAME_SIZE]; /* the name; "" in a slot of a wildcard's pool that is not used
	                              yet */
	bool pool;                 /* belongs to a wildcard */
	uint8_t v4[4];             /* network order */
	uint8_t v6[16];
	bool literal4, literal6; /* v4 (or v6) is a literal address of the plan; then the other one
	                            is not used */
	struct cidr range; /* the addresses of a literal, one or more; v4 or v6 is the first one */
	bool wide; /* a range with too many addresses and TCP ports to have a socket for each */
};

struct egress_table {
	const struct ssb_plan *plan; /* borrowed */
	struct cidr *ranges;         /* one for each rule; zeroed (`bits` is 0) if the rule is for
	                                a name */
	struct slot *slots;
	size_t n_slots;
	/* For each slot of a pool, the name that the broker gave it. The broker writes this memory,
	 * and the supervisor must treat it as untrusted text. NULL: there is no wildcard. */
	char (*given)[HOST_NAME_SIZE];
	bool v6; /* the host has IPv6, so AAAA queries are answered */
};

/* Sets *ret to a new table, which borrows the plan and must be freed by egress_table_free(). A plan
 * without rules gives an empty table. Returns 0, or -1 with `err`. */
int egress_table_new(const struct ssb_plan *plan, struct egress_table **ret, struct ssb_error *err);
void egress_table_free(struct egress_table *t);

/* Returns the slot of a dialled address (16-byte form, IPv4 mapped), or NULL if there is none. If
 * several ranges contain the address, returns the narrowest. */
struct slot *egress_by_address(struct egress_table *t, const struct address *a);
bool egress_is_at(const struct egress_table *t, const struct slot *s, const struct address *a);

/* Returns the name that a connection to this address of the slot is for: the slot's name, or the
 * address itself, written into `out`. */
const char *egress_name(const struct slot *s, const struct address *asked, char out[ADDRESS_TEXT]);

/* Returns the slot of a name that a rule grants. For a wildcard, that is the slot that the name
 * already has or gets now. Returns NULL if no rule grants the name, or if the pool is used up
 * (*ret_full). `name` must be normalised (lower case, no final dot). */
struct slot *egress_by_name(struct egress_table *t, const char *name, bool *ret_full);

/* Returns the rule that lets `slot` use `port` with TCP (or UDP), or -1 if there is none. If
 * several rules name the same domain, returns the one that allows any bytes, else the first. */
int egress_rule_for(const struct egress_table *t, const struct slot *slot, uint16_t port, bool udp);

/* Returns the first rule for this slot and port whose TCP connections must begin with `first`, or
 * -1 if there is none. */
int egress_rule_speaking(const struct egress_table *t, const struct slot *slot, uint16_t port,
                         enum first_bytes first);

/* Returns the protocol with which a connection by this rule to this port must begin. A `tcp` rule
 * also requires TLS or HTTP on their usual ports; on other ports the server may send first. */
enum first_bytes egress_first_bytes(const struct egress_rule *rule, uint16_t port);

bool egress_name_matches(const struct egress_rule *rule, const char *name);
bool egress_is_literal(const struct egress_rule *rule); /* an address or a range */

/* Returns whether the address belongs to the table, whatever the port is. ret_name receives the
 * host that it stands for; "" for literals, and for addresses of a pool that have no name. */
bool egress_knows(struct egress_table *t, const struct address *to, char ret_name[HOST_NAME_SIZE]);
/* The addresses at which DNS queries are answered: the resolver's own addresses (if there is any
 * rule), and the usual resolver addresses on loopback, except addresses that a rule has. */
#define N_RESOLVERS 5
extern const char *const EGRESS_RESOLVERS[N_RESOLVERS];
bool egress_resolves_at(const struct egress_table *t, const struct address *a);

/* Returns whether a socket of a wide range has taken the TCP port on all addresses, so that it
 * appears to listen at this address, too. A socket of IPv6 also appears to listen at IPv4
 * addresses. */
bool egress_takes_port(const struct egress_table *t, const struct address *to, uint16_t port);

/* Returns whether the broker listens at this address and port. */
bool egress_answers(struct egress_table *t, const struct address *to, uint16_t port, bool udp);

#endif
