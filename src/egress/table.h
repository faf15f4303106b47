/* table.h - the egress of a plan, numbered: what broker, dialler and stage
 * agree on. Made once by the supervisor before any of them exists; each has
 * its own copy by fork.
 *
 * Every exact name has a synthetic address of each family; a wildcard has a
 * pool of them, given out as names are asked for. A connection is therefore
 * always to one name, whatever real address it shares with others. A literal
 * address of the plan is its own name; a range of them has one slot, and each
 * connection the name of the address that it asked for. */
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
	struct cidr range;       /* of a literal: itself, or more; v4 or v6 is its base */
	bool wide; /* a range with too many addresses and TCP ports for a socket each */
};

struct egress_table {
	const struct ssb_plan *plan; /* borrowed */
	struct cidr *ranges;         /* of each rule; of names with 0 bits, and unused */
	struct slot *slots;
	size_t n_slots;
	/* Of each slot of a pool the name that the broker gave it: for it to write, and for the
	 * supervisor to read as text that nobody vouches for. NULL: no wildcard. */
	char (*given)[HOST_NAME_SIZE];
	bool v6; /* the host has IPv6: AAAA is answered */
};

/* New table (egress_table_free); NULL plan rules give an empty table. */
int egress_table_new(const struct ssb_plan *plan, struct egress_table **ret, struct ssb_error *err);
void egress_table_free(struct egress_table *t);

/* Slot of a dialled address (16-byte form, IPv4 mapped), of ranges the
 * narrowest; NULL: none. */
struct slot *egress_by_address(struct egress_table *t, const struct address *a);
bool egress_is_at(const struct egress_table *t, const struct slot *s, const struct address *a);

/* What a connection that asked for this address of the slot is for: its name,
 * or the address itself, written into `out`. */
const char *egress_name(const struct slot *s, const struct address *asked, char out[ADDRESS_TEXT]);

/* Slot of a name that a rule grants; for a wildcard the slot that the name
 * has or now gets. NULL: no rule, or the pool is used up (*ret_full). `name`
 * is normalised (lower case, no final dot). */
struct slot *egress_by_name(struct egress_table *t, const char *name, bool *ret_full);

/* The rule by which `slot` may use `port` with TCP (or UDP); -1: none. Several
 * rules may name the same domain: of them the one that lets any bytes pass, or
 * else the first. */
int egress_rule_for(const struct egress_table *t, const struct slot *slot, uint16_t port, bool udp);

/* Of those that name the same domain as that rule, the first by which a TCP
 * connection begins so; -1: none. */
int egress_rule_speaking(const struct egress_table *t, const struct slot *slot, uint16_t port,
                         enum first_bytes first);

/* What a connection by this rule to this port must begin with. `tcp` on the
 * ports of TLS and HTTP insists as well; elsewhere the server may speak first. */
enum first_bytes egress_first_bytes(const struct egress_rule *rule, uint16_t port);

bool egress_name_matches(const struct egress_rule *rule, const char *name);
bool egress_is_literal(const struct egress_rule *rule); /* an address or a range of them */

/* Is the address one of ours, whatever the port? ret_name is the host that it stands for;
 * "" for literals, and for addresses of a pool that no name has. */
bool egress_knows(struct egress_table *t, const struct address *to, char ret_name[HOST_NAME_SIZE]);
/* Where questions are asked: of the resolver's own addresses, and of the usual ones on
 * loopback but for those that a rule has. */
#define N_RESOLVERS 5
extern const char *const EGRESS_RESOLVERS[N_RESOLVERS];
bool egress_resolves_at(const struct egress_table *t, const struct address *a);

/* Is the TCP port taken on all addresses, for a range, by a socket that looks as if it were
 * at this one as well? One of IPv6 looks so to IPv4. */
bool egress_takes_port(const struct egress_table *t, const struct address *to, uint16_t port);

/* Is there a listener of ours at this address and port? */
bool egress_answers(struct egress_table *t, const struct address *to, uint16_t port, bool udp);

#endif
