/* Numbering: slot i has 198.18.(1 + i/254).(1 + i%254) and
 * fd53:7373:6273:1::(i + 1), whether it uses them or not. Rules that name the
 * same domain share its slot or pool, so that a name never has two addresses.
 *
 * A name beneath several wildcards belongs to the narrowest one. Its pool can
 * therefore be used on the ports of every wildcard around it, and on no other
 * ones: that is known before any name is asked for. */
#include "egress/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"

#define NAME_BYTES   sizeof(((struct slot *)NULL)->name)
#define SLOTS_PER_24 254 /* .0 and .255 look like networks and broadcasts */

static const uint8_t SYNTHETIC6[16] = { 0xfd, 0x53, 0x73, 0x73, 0x62, 0x73, 0, 1 };

/* What the sandbox itself lives on: no literal of a plan may lie there. */
static const char *const OWN_RANGES[] = { "198.18.0.0/15", "fd53:7373:6273::/48" };

/* Ports on which a client speaks TLS or HTTP from its first byte. */
static const uint16_t TLS_PORTS[] = { 443, 465, 636, 853, 990, 993, 995, 5061, 8443 };
static const uint16_t HTTP_PORTS[] = { 80, 8080 };

static bool port_in(const uint16_t *ports, size_t n, uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		if (ports[i] == port) {
			return true;
		}
	}
	return false;
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

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s);
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

/* The rule's own labels were checked with the manifest; what stands for its "*"
 * comes from the skill. */
static bool is_host_name(const char *name)
{
	if (strlen(name) >= NAME_BYTES) {
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

	switch (rule->kind) {
	case HOST_EXACT:
		return strcmp(domain, name) == 0;
	case HOST_WILDCARD: /* is_host_name() refuses an empty label before the dot */
		return is_host_name(name) && ends_with(name, domain + 1);
	case HOST_ADDRESS:
		return same_address(domain, name);
	case HOST_CIDR:
		break;
	}
	return false;
}

/* The larger, the fewer names a rule stands for. */
static size_t narrowness(const struct egress_rule *rule)
{
	return rule->kind == HOST_WILDCARD ? strlen(rule->domain.s) : SIZE_MAX;
}

/* An unused slot of a pool may get any name beneath its wildcard. */
static bool rule_covers(const struct egress_table *t, const struct egress_rule *rule,
                        const struct slot *slot)
{
	if (slot->name[0] != '\0') {
		return egress_name_matches(rule, slot->name);
	}
	return rule->kind == HOST_WILDCARD &&
	       ends_with(t->plan->egress[slot->rule].domain.s + 1, rule->domain.s + 1);
}

int egress_rule_for(const struct egress_table *t, const struct slot *slot, uint16_t port, bool udp)
{
	const struct egress_rule *best = NULL;

	for (size_t i = 0; i < t->plan->n_egress; i++) {
		const struct egress_rule *r = &t->plan->egress[i];
		if ((r->protocol == PROTO_UDP) != udp || !port_in(r->ports, r->n_ports, port) ||
		    !rule_covers(t, r, slot)) {
			continue;
		}
		if (best == NULL || narrowness(r) > narrowness(best)) {
			best = r;
		}
	}
	return best != NULL ? (int)(best - t->plan->egress) : -1;
}

static bool slot_has(const struct slot *s, const struct address *a)
{
	if (address_is_v4(a)) {
		return !s->literal6 && memcmp(s->v4, a->b + 12, sizeof(s->v4)) == 0;
	}
	return !s->literal4 && memcmp(s->v6, a->b, sizeof(s->v6)) == 0;
}

struct slot *egress_by_address(struct egress_table *t, const struct address *a)
{
	for (size_t i = 0; i < t->n_slots; i++) {
		struct slot *s = &t->slots[i];
		/* An address of a pool that was given to no name leads nowhere. */
		if (s->name[0] != '\0' && slot_has(s, a)) {
			return s;
		}
	}
	return NULL;
}

static bool same_domain(const struct egress_rule *a, const struct egress_rule *b)
{
	if (a->kind != b->kind) {
		return false;
	}
	return strcmp(a->domain.s, b->domain.s) == 0 ||
	       (a->kind == HOST_ADDRESS && same_address(a->domain.s, b->domain.s));
}

/* The first rule with the domain of this one: it made the slots. */
static unsigned slot_maker(const struct ssb_plan *plan, size_t rule)
{
	for (unsigned i = 0; i < rule; i++) {
		if (same_domain(&plan->egress[i], &plan->egress[rule])) {
			return i;
		}
	}
	return (unsigned)rule;
}

static const struct egress_rule *narrowest_wildcard(const struct ssb_plan *plan, const char *name)
{
	const struct egress_rule *best = NULL;

	for (size_t i = 0; i < plan->n_egress; i++) {
		const struct egress_rule *r = &plan->egress[i];
		if (r->kind == HOST_WILDCARD && egress_name_matches(r, name) &&
		    (best == NULL || narrowness(r) > narrowness(best))) {
			best = r;
		}
	}
	return best;
}

struct slot *egress_by_name(struct egress_table *t, const char *name, bool *ret_full)
{
	*ret_full = false;
	for (size_t i = 0; i < t->n_slots; i++) {
		struct slot *s = &t->slots[i];
		/* Literals are dialled, not asked for. */
		if (name[0] != '\0' && !s->literal4 && !s->literal6 && strcmp(s->name, name) == 0) {
			return s;
		}
	}
	const struct egress_rule *rule = narrowest_wildcard(t->plan, name);
	if (rule == NULL) {
		return NULL;
	}
	unsigned maker = slot_maker(t->plan, (size_t)(rule - t->plan->egress));
	for (size_t i = 0; i < t->n_slots; i++) {
		struct slot *s = &t->slots[i];
		if (s->pool && s->rule == maker && s->name[0] == '\0') {
			(void)snprintf(s->name, sizeof(s->name), "%s", name);
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

static int literal_add(struct egress_table *t, size_t rule, struct ssb_error *err)
{
	const char *text = t->plan->egress[rule].domain.s;
	struct address a;
	struct cidr own;

	if (!address_parse(text, &a)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "egress", "'%s' is not an address", text);
	}
	for (size_t i = 0; i < ARRAY_LEN(OWN_RANGES); i++) {
		if (cidr_parse(OWN_RANGES[i], &own) && cidr_contains(&own, &a)) {
			return ssb_fail(err, SSB_E_POLICY, 0, "egress",
			                "%s lies in %s, which the sandbox uses for itself; declare "
			                "the host by name",
			                text, OWN_RANGES[i]);
		}
	}
	struct slot *s = slot_add(t, rule);
	s->literal4 = address_is_v4(&a);
	s->literal6 = !s->literal4;
	memset(s->v4, 0, sizeof(s->v4));
	memset(s->v6, 0, sizeof(s->v6));
	if (s->literal4) {
		memcpy(s->v4, a.b + 12, sizeof(s->v4));
	} else {
		memcpy(s->v6, a.b, sizeof(s->v6));
	}
	(void)snprintf(s->name, sizeof(s->name), "%s", text);
	return 0;
}

static int rule_add(struct egress_table *t, size_t rule, struct ssb_error *err)
{
	const struct egress_rule *r = &t->plan->egress[rule];
	size_t need = r->kind == HOST_WILDCARD ? EGRESS_POOL : 1;

	if (r->kind == HOST_CIDR) {
		return ssb_fail(err, SSB_E_POLICY, 0, "egress",
		                "the address range %s cannot be granted yet; declare names, or "
		                "single addresses",
		                r->domain.s);
	}
	if (strlen(r->domain.s) >= NAME_BYTES) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "egress", "a domain is longer than 253 bytes");
	}
	if (slot_maker(t->plan, rule) != rule) {
		return 0;
	}
	if (t->n_slots + need > MAX_EGRESS_SLOTS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "egress",
		                "the network rules need more than %d addresses (a wildcard takes "
		                "%d); declare fewer",
		                MAX_EGRESS_SLOTS, EGRESS_POOL);
	}
	if (r->kind == HOST_ADDRESS) {
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
		n += plan->egress[i].kind == HOST_WILDCARD ? EGRESS_POOL : 1;
	}
	return n < MAX_EGRESS_SLOTS ? n : MAX_EGRESS_SLOTS;
}

/* Lines of if_inet6 begin with the address in 32 hexadecimal digits. */
static bool host_has_v6(void)
{
	auto_file f = fopen("/proc/net/if_inet6", "re");
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		bool loopback = strncmp(line, "00000000000000000000000000000001", 32) == 0;
		bool link_local = strncmp(line, "fe", 2) == 0 && strchr("89ab", line[2]) != NULL;
		if (strlen(line) > 32 && !loopback && !link_local) {
			return true;
		}
	}
	return false;
}

static void table_freep(struct egress_table **t)
{
	egress_table_free(*t);
}

int egress_table_new(const struct ssb_plan *plan, struct egress_table **ret, struct ssb_error *err)
{
	AUTO(table_freep) struct egress_table *t = calloc(1, sizeof(*t));

	if (t != NULL) {
		t->slots = calloc(slots_at_most(plan) + 1, sizeof(*t->slots));
	}
	if (t == NULL || t->slots == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "egress", "no memory for the network rules");
	}
	t->plan = plan;
	t->v6 = host_has_v6();
	for (size_t i = 0; i < plan->n_egress; i++) {
		if (rule_add(t, i, err) < 0) {
			return -1;
		}
	}
	*ret = steal_ptr(&t);
	return 0;
}

void egress_table_free(struct egress_table *t)
{
	if (t != NULL) {
		free(t->slots);
		free(t);
	}
}

bool egress_answers(struct egress_table *t, const struct address *to, uint16_t port, bool udp)
{
	static const char *const SERVERS[] = { EGRESS_DNS4, EGRESS_DNS6 };
	const struct slot *slot = egress_by_address(t, to);
	struct address server;

	for (size_t i = 0; i < ARRAY_LEN(SERVERS) && port == 53; i++) {
		if (address_parse(SERVERS[i], &server) &&
		    memcmp(&server, to, sizeof(server)) == 0) {
			return true;
		}
	}
	return slot != NULL && egress_rule_for(t, slot, port, udp) >= 0;
}
