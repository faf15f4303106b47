/* prices.h - what a model's tokens cost. A list of ours, and the owner's
 * ~/.config/skillsandbox/prices.yaml over it. */
#ifndef SESSION_PRICES_H
#define SESSION_PRICES_H

#include "policy/plan.h"
#include "session/money.h"
#include "skillsandbox.h"

struct price {
	char model[128];
	micros in; /* of 1,000,000 tokens */
	micros out;
};

struct prices {
	struct price *v;
	size_t n;
	bool has_default; /* the owner's `default:`; without it an unknown model is an error */
	struct price fallback;
};

int prices_load(const struct owner *o, struct prices *ret, struct ssb_diags *diags,
                struct ssb_error *err);
void prices_done(struct prices *p);
/* Rounded up to the micro-dollar. SSB_E_NOT_FOUND with the nearest name: unknown;
 * SSB_E_USAGE: more than MAX_MICROS. */
int prices_cost(const struct prices *p, const char *model, uint64_t tokens_in, uint64_t tokens_out,
                micros *ret, struct ssb_error *err);

#endif
