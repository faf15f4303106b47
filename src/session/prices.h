/* prices.h - the prices of models: a built-in list, which the owner's
 * ~/.config/skillsandbox/prices.yaml overrides. */
#ifndef SESSION_PRICES_H
#define SESSION_PRICES_H

#include "policy/plan.h"
#include "session/money.h"
#include "skillsandbox.h"

struct price {
	char model[128];
	micros in; /* price of 1,000,000 tokens */
	micros out;
};

struct prices {
	struct price *v;
	size_t n;
	bool has_default; /* the owner's file has `default:`; false: an unknown model is an error */
	struct price fallback;
};

int prices_load(const struct owner *o, struct prices *ret, struct ssb_diags *diags,
                struct ssb_error *err);
void prices_done(struct prices *p);
/* Computes the cost, rounded up to the micro-dollar. Fails with SSB_E_NOT_FOUND for an unknown
 * model, and the message names the nearest one. Fails with SSB_E_USAGE if the cost is more than
 * MAX_MICROS. */
int prices_cost(const struct prices *p, const char *model, uint64_t tokens_in, uint64_t tokens_out,
                micros *ret, struct ssb_error *err);

#endif
