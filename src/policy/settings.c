/* settings.c - limits, profile and sockets of a plan. */
#include <sys/sysinfo.h>

#include "base/limits.h"
#include "base/own.h"
#include "manifest/resources.h"
#include "policy/build.h"

void build_lower(struct build *b, const char *name, uint64_t *v, uint64_t most)
{
	if (most == OPTION_UNSET || *v <= most) {
		return;
	}
	if (b->manifest != NULL) {
		build_warn(b, "limits",
		           "%s: %llu is requested, but the policy file allows at "
		           "most %llu",
		           name, (unsigned long long)*v, (unsigned long long)most);
	}
	*v = most;
}

void build_ask_limit(struct build *b, const struct resource *r, uint64_t *v, uint64_t usual)
{
	if (b->manifest == NULL || *v <= usual) {
		return;
	}
	auto_free char *what = build_printf(b, "%s%s %llu", plan_requested_words(REQUESTED_LIMIT),
	                                    r->name, (unsigned long long)*v);
	if (what == NULL) {
		return;
	}
	build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	if (build_taken_out(b, REFUSAL_OTHER, b->manifest->file, what)) {
		*v = usual;
	}
}

/* Returns the memory of the machine in MiB; 0 if it cannot be read. */
static uint64_t memory_of_machine(void)
{
	struct sysinfo machine;

	return sysinfo(&machine) == 0 ? (uint64_t)machine.totalram * machine.mem_unit >> 20 : 0;
}

/* Lowers a limit in MiB to `most`, the memory of the machine. This includes the disk limit, because
 * the disk of a run is a file system in memory. */
static void lower_to_machine(struct build *b, const struct resource *r, uint64_t most, uint64_t *v)
{
	if (r->unit != UNIT_MIB || most == 0 || *v <= most || most < r->least) {
		return;
	}
	if (*v > resource_of(&RESOURCE_DEFAULTS, r)) {
		build_warn(b, "limits",
		           "%s: %llu is requested, but the machine has only %llu MiB of memory, "
		           "so the limit is %llu",
		           r->name, (unsigned long long)*v, (unsigned long long)most,
		           (unsigned long long)most);
	}
	*v = most;
}

static void set_limits(struct build *b)
{
	uint64_t memory = memory_of_machine();

	b->plan->res = b->manifest != NULL ? b->manifest->resources : RESOURCE_DEFAULTS;
	if (b->manifest == NULL) {
		/* You typed this command yourself: its output must not be cut, and an interactive
		 * program must not end while you use it. */
		b->plan->res.max_output_bytes = RESOURCE_UNLIMITED;
		b->plan->res.max_runtime_seconds =
		        b->request->interactive ? RESOURCE_UNLIMITED : DEF_RUNTIME_SECONDS;
	}
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		const struct resource *r = &RESOURCES[i];
		uint64_t *v = resource_in(&b->plan->res, r);
		build_ask_limit(b, r, v, resource_of(&RESOURCE_DEFAULTS, r));
		preset_raise_limit(b, r, v);
		/* You end a shell yourself, so the skill's limits do not end it. */
		if (b->opt->shell != NULL && (v == &b->plan->res.max_runtime_seconds ||
		                              v == &b->plan->res.max_output_bytes)) {
			*v = RESOURCE_UNLIMITED;
		}
		uint64_t flag = resource_of(&b->opt->res, r);
		if (flag != OPTION_UNSET) {
			*v = flag;
		} else {
			build_lower(b, r->name, v, resource_of(&b->policy.limits, r));
		}
		lower_to_machine(b, r, memory, v);
	}
}

static void set_profile(struct build *b)
{
	enum profile wanted = b->manifest != NULL ? b->manifest->profile : PROFILE_DEFAULT;
	auto_free char *what = build_printf(b, "%s%s", plan_requested_words(REQUESTED_PROFILE),
	                                    profile_name(wanted));

	if (what != NULL && wanted == PROFILE_PERMISSIVE) {
		build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	}
	if (b->opt->profile >= 0) {
		b->plan->profile = (enum profile)b->opt->profile;
		return;
	}
	if (b->manifest != NULL && what != NULL && wanted == PROFILE_PERMISSIVE &&
	    build_taken_out(b, REFUSAL_OTHER, b->manifest->file, what)) {
		return;
	}
	if (b->manifest == NULL || (b->policy.profiles & 1U << wanted) != 0 ||
	    build_gives(b, SSB_OPT_PROFILE, profile_name(wanted))) {
		b->plan->profile = wanted;
		return;
	}
	auto_free char *remedy = build_printf(
	        b, "the owner can allow it: --profile %s, or the policy file's 'profiles:'",
	        profile_name(wanted));
	if (what != NULL && remedy != NULL) {
		build_refuse(b, REFUSAL_OTHER, b->manifest->file, what,
		             "the owner does not let manifests choose this profile", remedy);
		build_offer(b, SSB_OPT_PROFILE, profile_name(wanted));
	}
}

static void set_sockets(struct build *b)
{
	bool writes = false;

	for (size_t i = 0; i < b->plan->n_grants; i++) {
		const struct grant *g = &b->plan->grants[i];
		/* A single device does not count, because no socket can be made in it. */
		writes |= g->access == ACCESS_WRITE && (g->kind == GRANT_FILES || g->is_dir);
	}
	int said = b->opt->unix_sockets >= 0 ? b->opt->unix_sockets : b->policy.unix_sockets;
	b->plan->unix_sockets = said >= 0 ? said != 0 : !writes;
	/* The observer decides about each of these sockets, so without an observer there are
	 * none. */
	b->plan->own_sockets = said < 0 && b->plan->audit != AUDIT_OFF;
	if (writes && said < 0 && !b->plan->own_sockets) {
		build_warn(b, "unix-sockets",
		           "unix sockets are off, because a directory is writable and no observer "
		           "runs; --unix-sockets allows them");
	}
}

void settings_build(struct build *b)
{
	set_limits(b);
	set_profile(b);
	b->plan->audit = b->opt->audit >= 0 ? (enum audit_level)b->opt->audit : AUDIT_FULL;
	set_sockets(b);
}
