/* withhold.c - requests that are withheld: they are left out of the plan without stopping the run.
 * These are the requests that the owner declined (--without, or in the approval), and requests of a
 * sidecar that names no directory. */
#include <string.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/own.h"
#include "policy/build.h"

bool build_is_taken_out(const struct build *b, const char *what)
{
	const struct plan_consent *c = &b->request->consent;
	bool out = string_list_has(&b->opt->withhold, what);

	for (size_t i = 0; i < ARRAY_LEN(c->declined); i++) {
		out |= c->declined[i] != NULL && string_list_has(c->declined[i], what);
	}
	return out;
}

bool build_taken_out(struct build *b, enum refusal_kind kind, const char *where, const char *what)
{
	if (!build_is_taken_out(b, what)) {
		return false;
	}
	build_withhold(b, &(struct refusal){ .kind = kind,
	                                     .what = (char *)(uintptr_t)what,
	                                     .where = (char *)(uintptr_t)where,
	                                     .why = (char[]){ "the owner took it out" },
	                                     .remedy = (char[]){ "" } });
	return true;
}

bool build_unbound(struct build *b, const char *where, const char *what, const char *path)
{
	if (!b->unbound) {
		return false;
	}
	for (size_t i = 0; i < b->opt->write.n; i++) {
		if (strcmp(b->opt->write.v[i], path) == 0) {
			return false;
		}
	}
	build_withhold(b, &(struct refusal){ .kind = REFUSAL_WRITE,
	                                     .what = (char *)(uintptr_t)what,
	                                     .where = (char *)(uintptr_t)where,
	                                     .why = (char[]){ UNBOUND },
	                                     .remedy = (char[]){ UNBOUND_REMEDY },
	                                     .option = SSB_OPT_WRITE,
	                                     .value = (char *)(uintptr_t)path });
	return true;
}

/* Warns about each --without that matched no request: it is probably mistyped. */
void withhold_finish(struct build *b)
{
	const struct string_list *l = &b->opt->withhold;

	for (size_t i = 0; i < l->n; i++) {
		bool found = ARRAY_HAS(withheld, b->plan->withheld, b->plan->n_withheld,
		                       strcmp(withheld->what, l->v[i]) == 0);
		if (!found) {
			build_warn(b, options_flag(SSB_OPT_WITHHOLD),
			           "'%.200s' is not a request of the skill; 'skillsandbox inspect "
			           "--json' lists its requests (key 'requested')",
			           l->v[i]);
		}
	}
}
