/* network.c - the network of a plan: which hosts it reaches, how much traffic is allowed, and which
 * addresses the owner opens although they are blocked by default. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/resources.h"
#include "policy/build.h"
#include "policy/range.h"

/* A range of one address is treated as that address. */
static void simplify_rule(struct egress_rule *r)
{
	struct cidr c;

	if (r->kind == HOST_CIDR && cidr_parse(r->domain.s, &c) && c.bits == 128) {
		r->domain.s[strcspn(r->domain.s, "/")] = '\0';
		r->kind = HOST_ADDRESS;
	}
}

static void add_egress(struct build *b, const struct egress_rule *rule)
{
	struct ssb_plan *p = b->plan;

	if (!ARRAY_MORE(p->egress, p->n_egress)) {
		b->failed = true;
		return;
	}
	struct egress_rule *r = &p->egress[p->n_egress];
	*r = *rule;
	r->domain.s = strdup(rule->domain.s);
	r->ports = malloc((rule->n_ports + 1) * sizeof(*r->ports));
	p->n_egress++;
	if (r->domain.s == NULL || r->ports == NULL) {
		b->failed = true;
		r->n_ports = 0;
		return;
	}
	memcpy(r->ports, rule->ports, rule->n_ports * sizeof(*r->ports));
	simplify_rule(r);
}

/* True if the address or range of `owner` contains the address or range of `rule`. */
static bool host_within(const struct egress_rule *owner, const struct egress_rule *rule)
{
	struct cidr outer;
	struct cidr inner;

	return cidr_parse(owner->domain.s, &outer) && cidr_parse(rule->domain.s, &inner) &&
	       outer.bits <= inner.bits && cidr_contains(&outer, &inner.base);
}

/* True if one of the first `n_owner` rules, which the owner made with --net, already allows `port`
 * of the address or range in `rule`. The owner's rules are for TCP only. */
static bool port_covered(const struct ssb_plan *p, size_t n_owner, const struct egress_rule *rule,
                         uint16_t port)
{
	bool found = false;

	for (size_t i = 0; i < n_owner && rule->protocol != PROTO_UDP; i++) {
		found |= host_within(&p->egress[i], rule) &&
		         egress_rule_has_port(&p->egress[i], port);
	}
	return found;
}

/* Returns false and records a refusal if the rule names an address or range that cannot be
 * enforced. */
static bool judge_range(struct build *b, const char *where, const char *what,
                        const struct egress_rule *rule)
{
	const char *remedy = NULL;
	const char *why = rule->kind == HOST_CIDR      ? range_problem(rule, &remedy)
	                  : rule->kind == HOST_ADDRESS ? range_address_problem(rule, &remedy)
	                                               : NULL;

	if (why != NULL) {
		build_refuse(b, REFUSAL_NETWORK, where, what, why, remedy);
	}
	return why == NULL;
}

static void add_owner_egress(struct build *b, const char *value, const char *from);

/* Judges one port of a rule that names an address instead of a host. Returns true if the approval
 * grants address and port; otherwise records a refusal. */
static bool judge_literal(struct build *b, const char *where, const char *what,
                          const struct egress_rule *rule, unsigned port)
{
	const char *host = rule->domain.s;
	bool v6 = strchr(host, ':') != NULL;
	bool udp = rule->protocol == PROTO_UDP; /* --net is TCP only */
	auto_free char *place =
	        build_printf(b, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", port);
	if (!udp && place != NULL && build_gives(b, SSB_OPT_NET, place)) {
		add_owner_egress(b, place, options_flag(SSB_OPT_NET));
		return true;
	}
	auto_free char *flag = udp ? build_printf(b, "%s", "")
	                           : build_printf(b, "--net %s, or ", place != NULL ? place : "");
	auto_free char *remedy = build_printf(
	        b,
	        "declare a name instead; or the owner can allow the address: %s'network: "
	        "{allow_literal_addresses: true}' in the policy file",
	        flag != NULL ? flag : "");
	if (remedy != NULL) {
		build_refuse(b, REFUSAL_NETWORK, where, what,
		             "an address instead of a name needs the owner's permission", remedy);
		if (!udp && place != NULL) {
			build_offer(b, SSB_OPT_NET, place);
		}
	}
	return false;
}

/* Returns the protocol as a suffix such as "/udp"; "" if it is TCP or the port alone shows it. */
static const char *protocol_part(const struct egress_rule *rule)
{
	uint16_t only = rule->n_ports == 1 ? rule->ports[0] : 0;

	switch (rule->protocol) {
	case PROTO_UDP:
		return "/udp";
	case PROTO_TLS:
		return only == 443 ? "" : "/tls";
	case PROTO_HTTP:
		return only == 80 ? "" : "/http";
	case PROTO_TCP:
		break;
	}
	return "";
}

/* Names the request: "connect to HOST" for port 443 alone; otherwise with the ports and the
 * protocol, because a rule for another port or protocol is another request. Returns new. */
static char *what_rule(struct build *b, const struct egress_rule *rule, const char *protocol)
{
	bool usual = rule->n_ports == 1 && rule->ports[0] == 443 && *protocol == '\0';
	bool v6 = strchr(rule->domain.s, ':') != NULL && !usual;
	auto_buf out = BUF(MAX_SCALAR_BYTES + 8UL * MAX_LIST_ITEMS);

	buf_addf(&out, "%s%s%s%s", plan_requested_words(REQUESTED_NETWORK), v6 ? "[" : "",
	         rule->domain.s, v6 ? "]" : "");
	for (size_t i = 0; i < rule->n_ports && !usual; i++) {
		buf_addf(&out, "%c%u", i == 0 ? ':' : ',', (unsigned)rule->ports[i]);
	}
	buf_adds(&out, protocol);
	char *what = buf_steal(&out);
	b->failed |= what == NULL;
	return what;
}

/* Returns the name of the request; new. An older form of the name has no protocol. If the owner
 * declined the request under the older name, returns the older name, so that the request stays
 * declined. */
static char *request_of(struct build *b, const struct egress_rule *rule)
{
	const char *protocol = protocol_part(rule);
	auto_free char *plain = rule->protocol == PROTO_UDP ? NULL : what_rule(b, rule, "");

	return plain != NULL && build_is_taken_out(b, plain) ? steal_ptr(&plain)
	                                                     : what_rule(b, rule, protocol);
}

/* Adds a rule that the skill asks for. `what` is the text of the request. The first `n_owner` rules
 * of the plan are the owner's. */
static void add_wanted_egress(struct build *b, const struct egress_rule *rule, const char *what,
                              const char *where, size_t n_owner)
{
	bool literal = rule->kind == HOST_ADDRESS || rule->kind == HOST_CIDR;

	build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	if (build_taken_out(b, REFUSAL_NETWORK, where, what) ||
	    !judge_range(b, where, what, rule)) {
		return;
	}
	bool refused = false;
	for (size_t i = 0; literal && !b->policy.literal_addresses && i < rule->n_ports; i++) {
		refused |= !port_covered(b->plan, n_owner, rule, rule->ports[i]) &&
		           !judge_literal(b, where, what, rule, rule->ports[i]);
	}
	if (!refused) {
		add_egress(b, rule);
	}
}

static void add_declared_egress(struct build *b, const struct egress_rule *rule, size_t n_owner)
{
	auto_free char *what = request_of(b, rule);
	char where[192];

	if (what != NULL) {
		build_where(b, &rule->domain, where, sizeof(where));
		add_wanted_egress(b, rule, what, where, n_owner);
	}
}

/* Warns about a name that means the sandbox itself, and not the owner's machine. */
static void tell_sandbox_host(struct build *b, const struct egress_rule *rule)
{
	auto_free char *text = !host_kind_is_sandbox(rule->domain.s)
	                               ? NULL
	                               : build_printf(b, RULE_OF_SANDBOX, rule->domain.s,
	                                              (unsigned)rule->ports[0]);
	if (text != NULL) {
		build_alarm(b, options_flag(SSB_OPT_NET), text);
	}
}

/* Adds the rules of the remembered grants. */
static void add_remembered_egress(struct build *b, size_t n_owner)
{
	const struct plan_consent *c = &b->request->consent;

	for (size_t i = 0; i < c->n_asked; i++) {
		const struct given *g = &c->asked[i];
		struct egress_rule rule;
		if (g->option != SSB_OPT_NET) {
			continue;
		}
		auto_free char *what = given_item(g->option, g->value);
		if (what == NULL || options_net(g->value, &rule) != NULL) {
			b->failed = true; /* the value was valid when it was remembered */
			return;
		}
		add_wanted_egress(b, &rule, what, WHERE_REMEMBERED, n_owner);
		tell_sandbox_host(b, &rule);
		free(rule.domain.s);
		free(rule.ports);
	}
}

/* Returns the plan's copy of a text for egress_rule.from; NULL if there is no memory. */
static const char *keep_origin(struct build *b, const char *from)
{
	struct string_list *l = &b->plan->origins;

	b->failed |= string_list_add_once(l, from, MAX_GRANTS) != 0;
	char *const *kept = ARRAY_FIND(e, l->v, l->n, strcmp(*e, from) == 0);
	return kept != NULL ? *kept : NULL;
}

/* True if the owner has already granted the same host and port: two sets may contain it. */
static bool is_granted(const struct ssb_plan *p, const struct egress_rule *rule)
{
	return ARRAY_HAS(e, p->egress, p->n_egress,
	                 strcmp(e->domain.s, rule->domain.s) == 0 &&
	                         egress_rule_has_port(e, rule->ports[0]));
}

static void add_owner_egress(struct build *b, const char *value, const char *from)
{
	struct egress_rule rule;

	if (options_net(value, &rule) != NULL) {
		/* the value was valid when it was given, so memory is exhausted */
		b->failed = true;
		return;
	}
	auto_free char *what =
	        build_printf(b, "%s%s", plan_requested_words(REQUESTED_NETWORK), rule.domain.s);
	rule.from = keep_origin(b, from);
	if (what != NULL && judge_range(b, from, what, &rule) && !is_granted(b->plan, &rule)) {
		add_egress(b, &rule);
	}
	tell_sandbox_host(b, &rule);
	free(rule.domain.s);
	free(rule.ports);
}

/* ---- the owner's ranges ----------------------------------------------------- */

/* Adds a range that the owner opens. Warns if it contains all addresses. */
static void add_private(struct build *b, const char *where, const char *range)
{
	struct string_list *l = &b->plan->allow_private;

	if (string_list_has(l, range)) {
		return;
	}
	build_add(b, l, range, MAX_GRANTS + MAX_LIST_ITEMS);
	if (strcmp(range, "0.0.0.0/0") == 0 || strcmp(range, "::/0") == 0) {
		build_warn(
		        b, where,
		        "%s lets granted host names lead to this machine's own services, its local "
		        "network and the cloud's metadata service",
		        range);
	}
}

static void set_private(struct build *b)
{
	const struct mtext_list *l = &b->policy.lists[POLICY_ALLOW_PRIVATE];
	const char *flag = options_flag(SSB_OPT_ALLOW_PRIVATE);
	char where[192];

	for (size_t i = 0; i < b->opt->allow_private.n; i++) {
		add_private(b, flag, b->opt->allow_private.v[i]);
	}
	if (b->opt->allow_private.n > 0 && b->plan->n_egress == 0) {
		build_warn(b, flag, "no host is granted, so this has no effect; add --net HOST");
	}
	for (size_t i = 0; i < l->n; i++) {
		add_private(b, policy_where(&b->policy, &l->v[i], where, sizeof(where)), l->v[i].s);
	}
}

/* Warns about a --net with an address of this machine that no range opens: the broker refuses to
 * connect to it. */
static void warn_guarded(struct build *b, size_t n_owner)
{
	static const char *const OWN[] = { "127.0.0.0/8", "::1/128" };
	const struct string_list *open = &b->plan->allow_private;

	for (size_t i = 0; i < n_owner; i++) {
		const char *host = b->plan->egress[i].domain.s;
		struct address a;
		struct cidr c;
		bool own = b->plan->egress[i].kind == HOST_ADDRESS && address_parse(host, &a) &&
		           ARRAY_HAS(range, OWN, ARRAY_LEN(OWN),
		                     cidr_parse(*range, &c) && cidr_contains(&c, &a));
		if (own && !ARRAY_HAS(range, open->v, open->n,
		                      cidr_parse(*range, &c) && cidr_contains(&c, &a))) {
			auto_free char *text = build_printf(
			        b,
			        "%s is this machine itself, so --net alone has no effect; to "
			        "reach its service: --allow-private %s",
			        host, host);
			build_alarm(b, options_flag(SSB_OPT_NET), text != NULL ? text : host);
		}
	}
}

/* Allows an encrypted ClientHello (ECH) for the rules that the policy file lists. Only the owner
 * can allow it, because it hides the real host name from us. */
static void set_ech(struct build *b)
{
	const struct mtext_list *l = &b->policy.lists[POLICY_ALLOW_ECH];

	for (size_t i = 0; i < b->plan->n_egress; i++) {
		for (size_t k = 0; k < l->n; k++) {
			struct egress_rule *r = &b->plan->egress[i];
			r->ech |= strcmp(r->domain.s, l->v[k].s) == 0;
		}
	}
}

static void set_net_limits(struct build *b)
{
	b->plan->net = b->manifest != NULL ? b->manifest->net : NET_DEFAULTS;
	if (b->plan->n_egress == 0) {
		return; /* the plan has no host, so the limits do not matter */
	}
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		const struct resource *r = &NET_LIMITS[i];
		build_ask_limit(b, r, resource_in(&b->plan->net, r), resource_of(&NET_DEFAULTS, r));
		build_lower(b, r->name, resource_in(&b->plan->net, r),
		            resource_of(&b->policy.net, r));
	}
}

/* Adds a host, or each host of a set. The value was checked when it was read. */
static void add_hosts(struct build *b, const char *value, const char *from)
{
	AUTO(string_list_done) struct string_list hosts = { 0 };
	struct ssb_error err = { 0 };

	b->failed |= from == NULL || preset_expand_net(value, &hosts, &err) != 0;
	for (size_t i = 0; i < hosts.n && !b->failed; i++) {
		add_owner_egress(b, hosts.v[i], from);
	}
}

static void add_flag_hosts(struct build *b)
{
	for (size_t i = 0; i < b->opt->net.n; i++) {
		const char *value = b->opt->net.v[i];
		auto_free char *from = build_printf(b, "--net%s%s", *value == '@' ? " " : "",
		                                    *value == '@' ? value : "");
		add_hosts(b, value, from);
	}
}

/* The hosts of presets and of the policy file. */
static void add_other_hosts(struct build *b)
{
	const struct mtext_list *always = &b->policy.lists[POLICY_ALWAYS_NET];
	char where[192];

	for (size_t i = 0; i < b->n_presets; i++) {
		const struct preset *p = &b->presets[i];
		for (size_t k = 0; k < p->net.n; k++) {
			add_hosts(b, p->net.v[k].s, p->where);
		}
	}
	for (size_t i = 0; i < always->n; i++) {
		policy_where(&b->policy, &always->v[i], where, sizeof(where));
		add_hosts(b, always->v[i].s, where);
	}
}

/* Plans a learning run. The hosts that the owner named are reached. Every other name gets an
 * address, too, so that the run shows which hosts the skill wants. A name may lead to a private
 * address only in a range of --allow-private. */
static void learn_network(struct build *b)
{
	const struct learn_options *l = &b->opt->learn;
	char every[] = LEARNING_ANY;
	struct egress_rule rule = { .domain = { .s = every },
		                    .kind = HOST_WILDCARD,
		                    .any = true,
		                    .protocol = PROTO_TCP,
		                    .ports = (uint16_t *)(uintptr_t)l->ports,
		                    .n_ports = l->n_ports };

	b->plan->learning = l->mode;
	memcpy(b->plan->canary, l->canary, sizeof(b->plan->canary));
	add_flag_hosts(b);
	add_egress(b, &rule);
	for (size_t i = 0; i < b->opt->allow_private.n; i++) {
		add_private(b, options_flag(SSB_OPT_ALLOW_PRIVATE), b->opt->allow_private.v[i]);
	}
	set_net_limits(b);
}

void network_build(struct build *b)
{
	if (b->opt->learn.mode != LEARNING_NOT) {
		learn_network(b);
		return;
	}
	add_flag_hosts(b);
	add_other_hosts(b);
	size_t n_owner = b->plan->n_egress;
	if (b->manifest != NULL) {
		add_remembered_egress(b, n_owner);
	}
	for (size_t i = 0; b->manifest != NULL && i < b->manifest->n_egress; i++) {
		add_declared_egress(b, &b->manifest->egress[i], n_owner);
	}
	set_private(b);
	warn_guarded(b, n_owner);
	set_ech(b);
	set_net_limits(b);
}
