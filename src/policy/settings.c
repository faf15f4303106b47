/* settings.c - network, limits, profile and sockets of a plan. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "policy/build.h"

static void add_egress(struct build *b, const struct egress_rule *rule)
{
	struct ssb_plan *p = b->plan;
	struct egress_rule *v = realloc(p->egress, (p->n_egress + 1) * sizeof(*v));

	if (v == NULL) {
		b->failed = true;
		return;
	}
	p->egress = v;
	struct egress_rule *r = &v[p->n_egress];
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
}

static bool owner_net_has(const struct ssb_plan *p, size_t n_owner, const char *host)
{
	for (size_t i = 0; i < n_owner; i++) {
		if (strcmp(p->egress[i].domain.s, host) == 0) {
			return true;
		}
	}
	return false;
}

static void add_declared_egress(struct build *b, const struct egress_rule *rule, size_t n_owner)
{
	const char *host = rule->domain.s;
	auto_free char *what = build_printf(b, "connect to %s", host);
	char where[192];

	if (what == NULL) {
		return;
	}
	build_add(b, &b->plan->requested, what, 4UL * MAX_LIST_ITEMS);
	bool literal = rule->kind == HOST_ADDRESS || rule->kind == HOST_CIDR;
	if (!literal || b->policy.literal_addresses || owner_net_has(b->plan, n_owner, host)) {
		add_egress(b, rule);
		return;
	}
	auto_free char *remedy =
	        build_printf(b,
	                     "declare a name; or the owner allows it: --net %s, or "
	                     "'network: {allow_literal_addresses: true}' in the "
	                     "policy file",
	                     host);
	if (remedy != NULL) {
		build_refuse(b, build_where(b, &rule->domain, where, sizeof(where)), what,
		             "addresses in place of names need the owner's word", remedy);
	}
}

static void set_network(struct build *b)
{
	for (size_t i = 0; i < b->opt->net.n; i++) {
		struct egress_rule rule;
		if (option_net(b->opt->net.v[i], &rule) != NULL) {
			b->failed = true; /* it was checked when given: only memory is left */
			continue;
		}
		add_egress(b, &rule);
		free(rule.domain.s);
		free(rule.ports);
	}
	size_t n_owner = b->plan->n_egress;
	for (size_t i = 0; b->manifest != NULL && i < b->manifest->n_egress; i++) {
		add_declared_egress(b, &b->manifest->egress[i], n_owner);
	}
	if (b->plan->n_egress > 0) {
		build_warn(b, "network",
		           "network egress is declared but this version has no egress engine: all "
		           "network access is denied");
	}
}

static void set_limits(struct build *b)
{
	static const struct {
		size_t at;
		const char *name;
	} FIELDS[] = {
		{ offsetof(struct resources, memory_mb), "memory_mb" },
		{ offsetof(struct resources, cpu_shares), "cpu_shares" },
		{ offsetof(struct resources, max_runtime_seconds), "max_runtime_seconds" },
		{ offsetof(struct resources, max_output_bytes), "max_output_bytes" },
		{ offsetof(struct resources, max_processes), "max_processes" },
		{ offsetof(struct resources, max_open_files), "max_open_files" },
		{ offsetof(struct resources, max_disk_mb), "max_disk_mb" },
	};

	b->plan->res = b->manifest != NULL ? b->manifest->resources : RESOURCE_DEFAULTS;
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
		uint64_t *v = (void *)((char *)&b->plan->res + FIELDS[i].at);
		const uint64_t *most =
		        (const void *)((const char *)&b->policy.limits + FIELDS[i].at);
		const uint64_t *flag = (const void *)((const char *)&b->opt->res + FIELDS[i].at);
		if (*flag != OPTION_UNSET) {
			*v = *flag;
		} else if (*most != OPTION_UNSET && *v > *most) {
			if (b->manifest != NULL) {
				build_warn(b, "limits",
				           "%s: %llu is asked, the policy file allows %llu",
				           FIELDS[i].name, (unsigned long long)*v,
				           (unsigned long long)*most);
			}
			*v = *most;
		}
	}
}

static void set_profile(struct build *b)
{
	enum profile wanted = b->manifest != NULL ? b->manifest->profile : PROFILE_DEFAULT;

	if (b->opt->profile >= 0) {
		b->plan->profile = (enum profile)b->opt->profile;
		return;
	}
	if (b->manifest == NULL || (b->policy.profiles & 1U << wanted) != 0) {
		b->plan->profile = wanted;
		return;
	}
	auto_free char *what = build_printf(b, "profile %s", profile_name(wanted));
	auto_free char *remedy = build_printf(
	        b, "the owner can allow it: --profile %s, or the policy file's 'profiles:'",
	        profile_name(wanted));
	if (what != NULL && remedy != NULL) {
		build_refuse(b, b->manifest->file, what,
		             "the owner does not let manifests choose this profile", remedy);
	}
}

static void set_sockets(struct build *b)
{
	bool writes = false;

	for (size_t i = 0; i < b->plan->n_grants; i++) {
		writes |= b->plan->grants[i].access == ACCESS_WRITE;
	}
	int said = b->opt->unix_sockets >= 0 ? b->opt->unix_sockets : b->policy.unix_sockets;
	b->plan->unix_sockets = said >= 0 ? said != 0 : !writes;
	if (writes && said < 0) {
		build_warn(b, "unix-sockets",
		           "unix sockets are off, because a directory is writable; --unix-sockets "
		           "allows them");
	}
}

void settings_build(struct build *b)
{
	set_network(b);
	set_limits(b);
	set_profile(b);
	set_sockets(b);
}
