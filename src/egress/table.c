/* table.c - assigns addresses to the names of a plan.
 *
 * Numbering: the addresses 198.18.(1 + i/254).(1 + i%254) and fd53:7373:6273:1::(i + 1) belong to
 * slot i, even if the slot does not use them. Rules that name the same domain share a slot or pool,
 * so that a name never has two addresses.
 *
 * A name that several wildcards match belongs to the narrowest one. The addresses of its pool may
 * be used on the ports of every wildcard that contains the narrowest one, and on no other ports. So
 * the ports are known before the skill asks for any name. The same rule applies to addresses: an
 * address belongs to the narrowest range that contains it. */
#include "egress/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/tail.h"
#include "policy/range.h"

#define SLOTS_PER_24 254 /* .0 and .255 look like network and broadcast addresses */

static const uint8_t SYNTHETIC6[16] = { 0xfd, 0x53, 0x73, 0x73, 0x62, 0x73, 0, 1 };

/* Ports on which the first bytes of a client are TLS or HTTP. */
static const uint16_t TLS_PORTS[] = { 443, 465, 636, 853, 990, 993, 995, 5061, 8443 };
static const uint16_t HTTP_PORTS[] = { 80, 8080 };

static bool port_in(const uint16_t *ports, size_t n, uint16_t port)
{
	return ARRAY_HAS(e, ports, n, *e == port);
}

enum first_bytes egress_first_bytes(const struct egress_rule *rule, uint16_t port)
{
	switch (rule->protocol) {
	case PROTO_TLS:
		return FIRST_TLS;
	case PROTO_HTTP:
		return FIRST_HTTP;
	case PROTO_TCP:
		if (port_in(TLS_PORTS, ARRAY_LEN(TLS_PORTS), port)) {
			return FIRST_TLS;
		}
		return port_in(HTTP_PORTS, ARRAY_LEN(HTTP_PORTS), port) ? FIRST_HTTP : FIRST_RAW;
	case PROTO_UDP:
		break;
	}
	return FIRST_RAW;
}

/* Returns whether the text is a host name. The labels in the rule were already checked with the
 * manifest, but the part that "*" stands for comes from the skill. */
static bool is_host_name(const char *name)
{
	if (strlen(name) >= HOST_NAME_SIZE) {
		return false;
	}
	for (const char *s = name;;) {
		size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_");
		if (n == 0 || n > 63 || (s[n] != '.' && s[n] != '\0')) {
			return false;
		}
		if (s[n] == '\0') {
			return true;
		}
		s += n + 1;
	}
}

static bool same_address(const char *a, const char *b)
{
	struct address x;
	struct address y;

	return address_parse(a, &x) && address_parse(b, &y) && memcmp(x.b, y.b, sizeof(x.b)) == 0;
}

bool egress_name_matches(const struct egress_rule *rule, const char *name)
{
	const char *domain = rule->domain.s;
	struct cidr range;
	struct address a;

	switch (rule->kind) {
	case HOST_EXACT:
		return strcmp(domain, name) == 0;
	case HOST_WILDCARD: /* is_host_name() refuses an empty label before the dot */
		return is_host_name(name) && tail_is(name, domain + 1);
	case HOST_ADDRESS:
		return same_address(domain, name);
	case HOST_CIDR:
		return address_parse(name, &a) && cidr_parse(domain, &range) &&
		       cidr_contains(&range, &a);
	}
	return false;
}

bool egress_is_literal(const struct egress_rule *rule)
{
	return rule->kind == HOST_ADDRESS || rule->kind == HOST_CIDR;
}

static bool is_range(const struct slot *s)
{
	return (s->literal4 || s->literal6) && s->range.bits < 128;
}

const char *egress_name(const struct slot *s, const struct address *asked, char out[ADDRESS_TEXT])
{
	if (!is_range(s)) {
		return s->name;
	}
	address_format(asked, out);
	return out;
}

/* Returns how narrow the rule is. The larger the result, the fewer names or addresses the rule
 * matches. */
static size_t rule_narrowness(const struct egress_table *t, size_t rule)
{
	const struct egress_rule *r = &t->plan->egress[rule];

	return r->kind == HOST_CIDR       ? t->ranges[rule].bits
	       : r->kind == HOST_WILDCARD ? strlen(r->domain.s)
	                                  : SIZE_MAX;
}

/* Returns whether the rule covers the slot. An unused slot of a pool may get any name that its
 * wildcard matches. */
static bool rule_covers(const struct egress_table *t, size_t rule, const struct slot *slot)
{
	const struct egress_rule *r = &t->plan->egress[rule];

	if (slot->literal4 || slot->literal6) {
		const struct cidr *range = &t->ranges[rule];
		return egress_is_literal(r) && range->bits <= slot->range.bits &&
		       cidr_contains(range, &slot->range.base);
	}
	if (slot->name[0] != '\0') {
		return egress_name_matches(r, slot->name);
	}
	return r->kind == HOST_WILDCARD &&
	       tail_is(t->plan->egress[slot->rule].domain.s + 1, r->domain.s + 1);
}

static bool rule_serves(const struct egress_table *t, size_t rule, const struct slot *slot,
                        uint16_t port, bool udp)
{
	const struct egress_rule *r = &t->plan->egress[rule];

	return (r->protocol == PROTO_UDP) == udp && port_in(r->ports, r->n_ports, port) &&
	       rule_covers(t, rule, slot);
}

/* Returns whether the rule is preferred to the rule `other` for the same slot and port. */
static bool rule_comes_first(const struct egress_table *t, size_t rule, size_t other, uint16_t port)
{
	size_t mine = rule_narrowness(t, rule);
	size_t theirs = rule_narrowness(t, other);

	if (mine != theirs) {
		return mine > theirs;
	}
	return egress_first_bytes(&t->plan->egress[rule], port) == FIRST_RAW &&
	       egress_first_bytes(&t->plan->egress[other], port) != FIRST_RAW;
}

int egress_rule_for(const struct egress_table *t, const struct slot *slot, uint16_t port, bool udp)
{
	int best = -1;

	for (size_t i = 0; i < t->plan->n_egress; i++) {
		if (rule_serves(t, i, slot, port, udp) &&
		    (best < 0 || rule_comes_first(t, i, (size_t)best, port))) {
			best = (int)i;
		}
	}
	return best;
}

int egress_rule_speaking(const struct egress_table *t, const struct slot *slot, uint16_t port,
                         enum first_bytes first)
{
	int best = egress_rule_for(t, slot, port, false);

	for (size_t i = 0; best >= 0 && i < t->plan->n_egress; i++) {
		if (rule_serves(t, i, slot, port, false) &&
		    rule_narrowness(t, i) == rule_narrowness(t, (size_t)best) &&
		    egress_first_bytes(&t->plan->egress[i], port) == first) {
			return (int)i;
		}
	}
	return -1;
}

static bool slot_has(const struct slot *s, const struct address *a)
{
	if (s->literal4 || s->literal6) {
		return cidr_contains(&s->range, a);
	}
	if (address_is_v4(a)) {
		return memcmp(s->v4, a->b + 12, sizeof(s->v4)) == 0;
	}
	return memcmp(s->v6, a->b, sizeof(s->v6)) == 0;
}

/* Returns the index of the slot, or n_slots if there is none. */
static size_t slot_at(const struct egress_table *t, const struct address *a)
{
	size_t best = t->n_slots;

	for (size_t i = 0; i < t->n_slots; i++) {
		const struct slot *s = &t->slots[i];
		/* An address of a pool that was not given to a name has no destination. */
		if (s->name[0] == '\0' || !slot_has(s, a)) {
			continue;
		}
		if (!is_range(s)) {
			return i;
		}
		if (best == t->n_slots || s->range.bits > t->slots[best].range.bits) {
			best = i;
		}
	}
	return best;
}

struct slot *egress_by_address(struct egress_table *t, const struct address *a)
{
	size_t i = slot_at(t, a);

	return i < t->n_slots ? &t->slots[i] : NULL;
}

bool egress_is_at(const struct egress_table *t, const struct slot *s, const struct address *a)
{
	size_t i = slot_at(t, a);

	return i < t->n_slots && &t->slots[i] == s;
}

static bool same_domain(const struct egress_rule *a, const struct egress_rule *b)
{
	if (a->kind != b->kind) {
		return false;
	}
	return strcmp(a->domain.s, b->domain.s) == 0 ||
	       (a->kind == HOST_ADDRESS && same_address(a->domain.s, b->domain.s));
}

/* Returns the first rule that has the same domain as this rule. That rule made the slots for all
 * rules with this domain. */
static unsigned slot_maker(const struct ssb_plan *plan, size_t rule)
{
	for (unsigned i = 0; i < rule; i++) {
		if (same_domain(&plan->egress[i], &plan->egress[rule])) {
			return i;
		}
	}
	return (unsigned)rule;
}

/* Returns the index of the narrowest wildcard rule that matches the name, or -1 if there is
 * none. */
static int narrowest_wildcard(const struct egress_table *t, const char *name)
{
	int best = -1;

	for (size_t i = 0; i < t->plan->n_egress; i++) {
		const struct egress_rule *r = &t->plan->egress[i];
		if (r->kind == HOST_WILDCARD && egress_name_matches(r, name) &&
		    (best < 0 || rule_narrowness(t, i) > rule_narrowness(t, (size_t)best))) {
			best = (int)i;
		}
	}
	return best;
}

struct slot *egress_by_name(struct egress_table *t, const char *name, bool *ret_full)
{
	*ret_full = false;
	for (size_t i = 0; i < t->n_slots; i++) {
		struct slot *s = &t->slots[i];
		/* Literals are dialled directly, so they are not names to ask for. */
		if (name[0] != '\0' && !s->literal4 && !s->literal6 && strcmp(s->name, name) == 0) {
			return s;
		}
	}
	int rule = narrowest_wildcard(t, name);
	if (rule < 0) {
		return NULL;
	}
	unsigned maker = slot_maker(t->plan, (size_t)rule);
	for (size_t i = 0; i < t->n_slots; i++) {
		struct slot *s = &t->slots[i];
		if (s->pool && s->rule == maker && s->name[0] == '\0') {
			assert(t->given != NULL);
			(void)snprintf(s->name, sizeof(s->name), "%s", name);
			memcpy(t->given[i], s->name, sizeof(s->name));
			return s;
		}
	}
	*ret_full = true;
	return NULL;
}

static struct slot *slot_add(struct egress_table *t, size_t rule)
{
	size_t i = t->n_slots++;
	struct slot *s = &t->slots[i];
	size_t number = i + 1;

	s->rule = (unsigned)rule;
	s->v4[0] = 198;
	s->v4[1] = 18;
	s->v4[2] = (uint8_t)(1 + i / SLOTS_PER_24);
	s->v4[3] = (uint8_t)(1 + i % SLOTS_PER_24);
	memcpy(s->v6, SYNTHETIC6, sizeof(s->v6));
	s->v6[14] = (uint8_t)(number >> 8);
	s->v6[15] = (uint8_t)number;
	return s;
}

_Static_assert(MAX_EGRESS_SLOTS <= SLOTS_PER_24 * 254, "within 198.18.0.0/16");

/* Adds the slot of an address or of a range. */
static int literal_add(struct egress_table *t, size_t rule, struct ssb_error *err)
{
	const char *text = t->plan->egress[rule].domain.s;
	struct cidr c = t->ranges[rule];

	if (range_of_sandbox(&c) != NULL) {
		return ssb_fail(err, SSB_E_POLICY, 0, "egress",
		                "%s lies in %s, which the sandbox uses for itself; declare "
		                "the host by name",
		                text, range_of_sandbox(&c));
	}
	struct slot *s = slot_add(t, rule);
	s->range = c;
	s->literal4 = address_is_v4(&c.base);
	s->literal6 = !s->literal4;
	memset(s->v4, 0, sizeof(s->v4));
	memset(s->v6, 0, sizeof(s->v6));
	if (s->literal4) {
		memcpy(s->v4, c.base.b + 12, sizeof(s->v4));
	} else {
		memcpy(s->v6, c.base.b, sizeof(s->v6));
	}
	(void)snprintf(s->name, sizeof(s->name), "%s", text);
	return 0;
}

static size_t slots_for(const struct ssb_plan *plan, const struct egress_rule *r)
{
	size_t pool = plan->learning != LEARNING_NOT ? LEARN_POOL : EGRESS_POOL;

	return r->kind == HOST_WILDCARD ? pool : 1;
}

static int rule_add(struct egress_table *t, size_t rule, struct ssb_error *err)
{
	const struct egress_rule *r = &t->plan->egress[rule];
	size_t need = slots_for(t->plan, r);

	if (strlen(r->domain.s) >= HOST_NAME_SIZE) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "egress", "a domain is longer than 253 bytes");
	}
	if (egress_is_literal(r) && !cidr_parse(r->domain.s, &t->ranges[rule])) {
		return ssb_fail(err, SSB_E_POLICY, 0, "egress", "'%s' is not an address",
		                r->domain.s);
	}
	if (slot_maker(t->plan, rule) != rule) {
		return 0;
	}
	if (t->n_slots + need > MAX_EGRESS_SLOTS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "egress",
		                "the network rules need more than %d addresses (a wildcard takes "
		                "%d); declare fewer hosts",
		                MAX_EGRESS_SLOTS, EGRESS_POOL);
	}
	if (egress_is_literal(r)) {
		return literal_add(t, rule, err);
	}
	for (size_t i = 0; i < need; i++) {
		struct slot *s = slot_add(t, rule);
		s->pool = r->kind == HOST_WILDCARD;
		if (!s->pool) {
			(void)snprintf(s->name, sizeof(s->name), "%s", r->domain.s);
		}
	}
	return 0;
}

static size_t slots_at_most(const struct ssb_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_egress && n < MAX_EGRESS_SLOTS; i++) {
		n += slots_for(plan, &plan->egress[i]);
	}
	return n < MAX_EGRESS_SLOTS ? n : MAX_EGRESS_SLOTS;
}

/* Returns true if the slot would need too many sockets: one for each address and TCP port. */
static bool is_wide(const struct egress_table *t, const struct slot *s)
{
	size_t n = 0;

	for (size_t r = 0; is_range(s) && r < t->plan->n_egress; r++) {
		const struct egress_rule *rule = &t->plan->egress[r];
		for (size_t i = 0; i < rule->n_ports; i++) {
			n += egress_rule_for(t, s, rule->ports[i], false) == (int)r;
			if (n > 0 && range_size(&s->range) > MAX_RANGE_SOCKETS / n) {
				return true;
			}
		}
	}
	return false;
}

/* Returns whether the host has an IPv6 address that reaches other networks. Lines of if_inet6 begin
 * with the address, as 32 hexadecimal digits. */
static bool host_has_v6(void)
{
	auto_file f = fopen("/proc/net/if_inet6", "re");
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		bool loopback = strncmp(line, "00000000000000000000000000000001", 32) == 0;
		bool link_local = strncmp(line, "fe", 2) == 0 && strchr("89ab", line[2]) != NULL;
		/* an address that net_loopback_up() made, if this program itself runs in a
		 * sandbox */
		bool sandbox = strncmp(line, "fd5373736273", 12) == 0;
		if (strlen(line) > 32 && !loopback && !link_local && !sandbox) {
			return true;
		}
	}
	return false;
}

OWN_FREEP(table_freep, struct egress_table, egress_table_free)

/* Maps the memory for `given`, the only part of the table that all processes share. */
static int share_given(struct egress_table *t)
{
	void *p = mmap(NULL, t->n_slots * sizeof(*t->given), PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		return -1;
	}
	t->given = p;
	return 0;
}

int egress_table_new(const struct ssb_plan *plan, struct egress_table **ret, struct ssb_error *err)
{
	AUTO(table_freep) struct egress_table *t = calloc(1, sizeof(*t));

	if (t != NULL) {
		t->slots = calloc(slots_at_most(plan) + 1, sizeof(*t->slots));
		t->ranges = calloc(plan->n_egress + 1, sizeof(*t->ranges));
	}
	if (t == NULL || t->slots == NULL || t->ranges == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "egress", "out of memory");
	}
	t->plan = plan;
	t->v6 = plan->n_egress > 0 && host_has_v6();
	for (size_t i = 0; i < plan->n_egress; i++) {
		if (rule_add(t, i, err) < 0) {
			return -1;
		}
	}
	bool pools = false;
	for (size_t i = 0; i < t->n_slots; i++) {
		t->slots[i].wide = is_wide(t, &t->slots[i]);
		pools |= t->slots[i].pool;
	}
	if (pools && share_given(t) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "egress", "out of memory");
	}
	*ret = steal_ptr(&t);
	return 0;
}

void egress_table_free(struct egress_table *t)
{
	if (t != NULL) {
		if (t->given != NULL) {
			(void)munmap(t->given, t->n_slots * sizeof(*t->given));
		}
		free(t->slots);
		free(t->ranges);
		free(t);
	}
}

/* Returns the index of the slot, or n_slots if the address is not in the pool of a wildcard. */
static size_t pool_at(const struct egress_table *t, const struct address *a)
{
	size_t i = 0;

	while (i < t->n_slots && !(t->slots[i].pool && slot_has(&t->slots[i], a))) {
		i++;
	}
	return i;
}

/* Gets the name that the broker gave to an address of a pool. The broker is not trusted, so the
 * name counts only if the wildcard matches it. */
static void given_name(const struct egress_table *t, size_t i, char ret[HOST_NAME_SIZE])
{
	char name[HOST_NAME_SIZE];

	memcpy(name, t->given[i], sizeof(name));
	name[sizeof(name) - 1] = '\0';
	if (egress_name_matches(&t->plan->egress[t->slots[i].rule], name)) {
		memcpy(ret, name, sizeof(name));
	}
}

bool egress_knows(struct egress_table *t, const struct address *to, char ret_name[HOST_NAME_SIZE])
{
	size_t i = slot_at(t, to);
	size_t pool = i < t->n_slots ? t->n_slots : pool_at(t, to);

	ret_name[0] = '\0';
	if (i < t->n_slots && t->plan->egress[t->slots[i].rule].kind == HOST_EXACT) {
		memcpy(ret_name, t->slots[i].name, HOST_NAME_SIZE);
	}
	if (pool < t->n_slots) {
		given_name(t, pool, ret_name);
	}
	return i < t->n_slots || pool < t->n_slots;
}

const char *const EGRESS_RESOLVERS[N_RESOLVERS] = { EGRESS_DNS4, EGRESS_DNS6, "127.0.0.1",
	                                            "127.0.0.53", "::1" };

bool egress_resolves_at(const struct egress_table *t, const struct address *a)
{
	size_t at = slot_at(t, a);
	struct address server;

	if ((!t->v6 && !address_is_v4(a)) ||
	    (at < t->n_slots && egress_rule_for(t, &t->slots[at], 53, true) >= 0)) {
		return false;
	}
	/* Without a rule the sandbox has no route to the resolver's own address. */
	if (t->plan->n_egress == 0 && !guard_is_loopback(a)) {
		return false;
	}
	return ARRAY_HAS(egress_resolver, EGRESS_RESOLVERS, N_RESOLVERS,
	                 address_parse(*egress_resolver, &server) &&
	                         memcmp(&server, a, sizeof(server)) == 0);
}

bool egress_takes_port(const struct egress_table *t, const struct address *to, uint16_t port)
{
	return ARRAY_HAS(s, t->slots, t->n_slots,
	                 s->wide && (s->literal6 || address_is_v4(to)) &&
	                         egress_rule_for(t, s, port, false) >= 0);
}

bool egress_answers(struct egress_table *t, const struct address *to, uint16_t port, bool udp)
{
	size_t at = slot_at(t, to);

	if (port == 53 && egress_resolves_at(t, to)) {
		return true;
	}
	/* An address of a pool has a listener even if it was not given to a name. */
	at = at < t->n_slots ? at : pool_at(t, to);
	return at < t->n_slots && egress_rule_for(t, &t->slots[at], port, udp) >= 0;
}
