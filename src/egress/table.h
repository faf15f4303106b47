/* table.h - the network rules of a plan, with the addresses that stand for their names: what
 * broker, dialler and supervisor agree on. The supervisor makes it once before any of them
 * exists, and each has its own copy by fork.
 *
 * Every exact name has a synthetic address of each family. A wildcard has a pool of them, which
 * are given to names as they are asked for. A connection is therefore always to one name, even if
 * the name shares its real address with others. A literal address of the plan is its own name. A
 * range of addresses has one slot, and each connection has the name of the address that it asked
 * for. */
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

/* What the first bytes of a connection must be. */
enum first_bytes { FIRST_RAW, FIRST_TLS, FIRST_HTTP };

struct slot {
	unsigned rule;             /* index into plan->egress of the rule that made it */
	char name[HOST_NAME_SIZE]; /* the name; "" in an unused slot of a wildcard's pool */
	bool pool;                 /* belongs to a wildcard */
	uint8_t v4[4];             /* network order */
	uint8_t v6[16];
	bool literal4, literal6; /* v4 or v6 is the plan's own literal; the other is unused */
	struct cidr range;       /* a literal's addresses, one or more; v4 or v6 is the base */
	bool wide; /* a range with too many addresses and TCP ports for a socket each */
};

struct egress_table {
	const struct ssb_plan *plan; /* borrowed */
	struct cidr *ranges;         /* one for each rule; unused (0 bits) for names */
	struct slot *slots;
	size_t n_slots;
	/* For each slot of a pool, the name that the broker gave it. The broker writes it; the
	 * supervisor reads it as untrusted text. NULL: no wildcard. */
	char (*given)[HOST_NAME_SIZE];
	bool v6; /* the host has IPv6: AAAA is answered */
};

/* Returns a new table (egress_table_free), which borrows the plan. A plan without rules gives an
 * empty table. */
int egress_table_new(const struct ssb_plan *plan, struct egress_table **ret, struct ssb_error *err);
void egress_table_free(struct egress_table *t);

/* Returns the slot of a dialled address (16-byte form, IPv4 mapped); of several ranges the
 * narrowest. NULL: none. */
struct slot *egress_by_address(struct egress_table *t, const struct address *a);
bool egress_is_at(const struct egress_table *t, const struct slot *s, const struct address *a);

/* Returns what a connection to this address of the slot is for: the slot's name, or the address
 * itself, written into `out`. */
const char *egress_name(const struct slot *s, const struct address *asked, char out[ADDRESS_TEXT]);

/* Returns the slot of a name that a rule grants; for a wildcard the slot that the name has or now
 * gets. NULL: no rule grants it, or the pool is used up (*ret_full). `name` must be normalised
 * (lower case, no final dot). */
struct slot *egress_by_name(struct egress_table *t, const char *name, bool *ret_full);

/* Returns the rule by which `slot` may use `port` with TCP (or UDP); -1: none. If several rules
 * name the same domain, it is the one that lets any bytes pass, or else the first. */
int egress_rule_for(const struct egress_table *t, const struct slot *slot, uint16_t port, bool udp);

/* Among the rules that name the same domain as that rule, returns the first whose TCP connections
 * begin with `first`; -1: none. */
int egress_rule_speaking(const struct egress_table *t, const struct slot *slot, uint16_t port,
                         enum first_bytes first);

/* Returns what a connection by this rule to this port must begin with. A `tcp` rule insists on
 * it, too, on the ports of TLS and HTTP; elsewhere the server may speak first. */
enum first_bytes egress_first_bytes(const struct egress_rule *rule, uint16_t port);

bool egress_name_matches(const struct egress_rule *rule, const char *name);
bool egress_is_literal(const struct egress_rule *rule); /* an address or a range */

/* Is the address one of the table's, whatever the port? ret_name is the host that it stands for;
 * "" for literals, and for addresses of a pool that have no name. */
bool egress_knows(struct egress_table *t, const struct address *to, char ret_name[HOST_NAME_SIZE]);
/* Where DNS questions are answered: at the resolver's own addresses, and at the usual ones on
 * loopback, except those that a rule has. */
#define N_RESOLVERS 5
extern const char *const EGRESS_RESOLVERS[N_RESOLVERS];
bool egress_resolves_at(const struct egress_table *t, const struct address *a);

/* Is the TCP port taken on all addresses (for a wide range), by a socket that seems to listen at
 * this address as well? A socket of IPv6 seems so to IPv4. */
bool egress_takes_port(const struct egress_table *t, const struct address *to, uint16_t port);

/* Is there a listener of ours at this address and port? */
bool egress_answers(struct egress_table *t, const struct address *to, uint16_t port, bool udp);

#endif
