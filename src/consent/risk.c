/* risk.c - collects the reasons for the risk of a plan. */
#include "consent/risk.h"

#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "policy/secrets.h"

/* Returns true if the owner declined the item `what`. An item that is only withheld until the owner
 * agrees is not declined. */
static bool is_declined(const struct ssb_plan *p, const char *what)
{
	return ARRAY_HAS(e, p->withheld, p->n_withheld,
	                 e->value == NULL && strcmp(e->what, what) == 0);
}

/* Returns true if callers can give the skill files of theirs with at least this access. */
static bool takes_arguments(const struct ssb_plan *p, enum named_files access)
{
	const char *value;

	return ARRAY_HAS(what, p->requested.v, p->requested.n,
	                 plan_requested_kind(*what, &value) == REQUESTED_ARGUMENTS &&
	                         named_files_from(value) >= access && !is_declined(p, *what));
}

static bool reads_yours(const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		enum grant_origin o = p->grants[i].origin;
		if (o != ORIGIN_SKILL && o != ORIGIN_TOOLCHAIN) {
			return true;
		}
	}
	return takes_arguments(p, NAMED_READ);
}

static bool changes_files(const struct ssb_plan *p)
{
	return takes_arguments(p, NAMED_WRITE) ||
	       ARRAY_HAS(grant, p->grants, p->n_grants, grant->access == ACCESS_WRITE);
}

static bool reaches_hosts(const struct ssb_plan *p)
{
	return p->n_egress > 0;
}

static bool can_leak(const struct ssb_plan *p)
{
	return reaches_hosts(p) && reads_yours(p);
}

static bool is_variable(const char *entry, const char *name)
{
	size_t n = strcspn(entry, "=");

	return strlen(name) == n && strncmp(name, entry, n) == 0;
}

static bool leaks_credentials(const struct ssb_plan *p)
{
	for (size_t i = 0; i < p->requested.n && reaches_hosts(p); i++) {
		const char *what = p->requested.v[i];
		const char *name;
		if (plan_requested_kind(what, &name) == REQUESTED_ENV &&
		    secret_of(name, NULL) >= SECRET_OWNERS && !is_declined(p, what)) {
			return true;
		}
	}
	return false;
}

/* Returns true if the skill gets variables of the caller's environment (a key, for example) that it
 * asked for. */
static bool leaks_variables(const struct ssb_plan *p)
{
	static const char *const dull[] = { "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		                            "TERM", "PATH",   "HOME" };

	for (size_t i = 0; i < p->requested.n && reaches_hosts(p); i++) {
		const char *name;
		bool counts = plan_requested_kind(p->requested.v[i], &name) == REQUESTED_ENV;
		for (size_t k = 0; counts && k < ARRAY_LEN(dull); k++) {
			counts = strcmp(dull[k], name) != 0;
		}
		for (size_t k = 0; counts && k < p->env.n; k++) {
			if (is_variable(p->env.v[k], name)) {
				return true;
			}
		}
	}
	return false;
}

static bool reaches_private(const struct ssb_plan *p)
{
	return reaches_hosts(p) && p->allow_private.n > 0;
}

static bool is_permissive(const struct ssb_plan *p)
{
	return p->profile == PROFILE_PERMISSIVE;
}

static bool lacks_layers(const struct ssb_plan *p)
{
	return p->best_effort != 0;
}

static bool is_unseen(const struct ssb_plan *p)
{
	return p->audit == AUDIT_OFF;
}

/* The worst level comes first, because the first reason that applies gives the level. */
static const struct {
	const char *level;
	bool (*is)(const struct ssb_plan *p);
	const char *reason;
} RISKS[] = {
	{ "high", lacks_layers, "it runs although a layer of the sandbox cannot be applied" },
	{ "high", can_leak, "files of yours that it can read can leave by the network" },
	{ "high", leaks_credentials,
	  "a credential of yours that it asks for can leave by the network" },
	{ "high", is_permissive, "it may make almost every system call" },
	{ "high", reaches_private, "it can reach hosts of a private network" },
	{ "medium", reaches_hosts, "it can send data to the hosts that the plan names" },
	{ "medium", leaks_variables,
	  "variables of yours that it gets (such as a key) can leave by the network" },
	{ "medium", changes_files, "it can change files, and the changes stay after it has ended" },
	{ "medium", is_unseen, "nothing of what it does is recorded" },
	{ "medium", reads_yours, "it can read files of yours, but it cannot send them" },
};

const char *risk_level(const struct ssb_plan *p)
{
	for (size_t i = 0; i < ARRAY_LEN(RISKS); i++) {
		if (RISKS[i].is(p)) {
			return RISKS[i].level;
		}
	}
	return "low";
}

/* Returns true if reason `i` applies. "... but it cannot send them" (reads_yours) does not apply
 * if the skill can reach hosts. */
static bool risk_applies(size_t i, const struct ssb_plan *p)
{
	return RISKS[i].is(p) && !(RISKS[i].is == reads_yours && reaches_hosts(p));
}

void risk_json(struct json *j, const struct ssb_plan *p)
{
	json_kopen(j, "risk", '{');
	json_kstr(j, "level", risk_level(p));
	json_kopen(j, "reasons", '[');
	for (size_t i = 0; i < ARRAY_LEN(RISKS); i++) {
		if (risk_applies(i, p)) {
			json_str(j, RISKS[i].reason);
		}
	}
	json_close(j, ']');
	json_close(j, '}');
}

void risk_text(struct buf *out, const struct ssb_plan *p)
{
	buf_addf(out, "risk: %s\n", risk_level(p));
	for (size_t i = 0; i < ARRAY_LEN(RISKS); i++) {
		if (risk_applies(i, p)) {
			buf_addf(out, "  %s\n", RISKS[i].reason);
		}
	}
}
